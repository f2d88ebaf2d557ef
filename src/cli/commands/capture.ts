// `capture`: writes a tape of the chain, by the feed itself, so that what it asks for is on the tape too.
import { readConfig } from '../../config/config.ts'
import { MEGABYTE } from '../../lib/bytes.ts'
import { SECOND_MS, TIMER_MS_MAX } from '../../lib/time.ts'
import { type Command, Failure, type Values } from '../command.ts'
import { counted, numberOption, wholeNumber } from '../common.ts'
import { Stop } from '../stop.ts'
import { type Terminal, write } from '../terminal.ts'

async function run(values: Values, terminal: Terminal): Promise<undefined> {
  const config = readConfig(serverFlags(values), {})
  // Loaded here: no other command reads the chain.
  const { captureTape } = await import('../../ingest/solana/capture.ts')
  const stop = new Stop(terminal)
  const secondsMax = wholeNumber(values, 'seconds', 1, Math.floor(TIMER_MS_MAX / SECOND_MS))
  const bytesMax = wholeNumber(values, 'size-mb', 1) * MEGABYTE
  const { out = '' } = values
  const options = {
    solana: config.solana,
    out,
    bytesMax,
    timeMsMax: secondsMax * SECOND_MS,
    signal: stop.signal,
  }
  // Ctrl-C is how a capture is ended, and no error.
  const { lines, bytes, end, problem, disconnects, isConnected } = await stop.during(() =>
    captureTape(options, terminal.clock),
  )
  if (lines === 0) throw new Failure(problem ?? 'nothing came from the endpoint')
  await write(
    terminal.stdout,
    `${out}: ${counted(lines, 'line')}, ${bytes} bytes before compression (${end})\n`,
  )
  if (disconnects > 0)
    terminal.stderr.write(
      `mintlake: ${counted(disconnects, 'connection')} ended on the way: what came before the next one is not on the tape, which tells a gap there\n`,
    )
  if (!isConnected) terminal.stderr.write(`mintlake: there was no connection at the end: ${problem}\n`)
}

const serverFlags = (values: Values): string[] =>
  ['solana-rpc', 'solana-ws', 'solana-commitment', 'solana-rps']
    .flatMap((name) => (values[name] ? [`--${name}`, values[name]] : []))
    .concat(['--feed', 'solana'])

export const captureCommand: Command = {
  name: 'capture',
  summary: 'Write what endpoints of the chain send to a file that the feed solana can play',
  options: {
    'solana-rpc': { value: 'URL', isRequired: true, description: 'RPC endpoints, comma-separated' },
    'solana-ws': { value: 'URL', otherwise: '', description: 'Their addresses for subscriptions' },
    'solana-commitment': {
      value: 'WORD',
      otherwise: 'confirmed',
      allowed: ['confirmed', 'processed'],
      description: 'What counts as having happened',
    },
    'solana-rps': numberOption('N', 8, 'Requests per second that the endpoints allow'),
    out: { value: 'FILE', isRequired: true, description: 'The file to write, which must not exist' },
    seconds: numberOption('N', 3600, 'It ends after this long'),
    'size-mb': numberOption('N', 4000, 'It ends at this size, before compression'),
  },
  notes: [
    'The file holds every notification and every answer, and no address of an endpoint, so it can be passed on.',
    'Play it with npm start -- --feed solana --solana-tape FILE --replay speed=max',
  ],
  run,
}
