// `clock trust`: the operator's word that the machine's clock is right.
import { clockTrustedSchema } from '../../schema/api/admin.ts'
import type { Command } from '../command.ts'
import { askAsOperator, URL_OPTION } from '../server-client.ts'
import { write } from '../terminal.ts'

export const clockTrustCommand: Command = {
  name: 'clock trust',
  summary: 'Confirm that the server’s clock is right: market time is brought to it, and the market stays',
  options: { url: URL_OPTION },
  notes: [
    'A server does not believe a clock that is behind what was recorded, or that has leapt: /health says how far market',
    'time and the clock are apart. Set the clock first (timedatectl set-ntp true). Needs MINTLAKE_ADMIN_KEY, as the',
    'server was started with it.',
  ],
  async run(values, terminal) {
    const question = { path: '/api/v1/admin/clock/trust', body: {} }
    const { movedMs, marketTimeMs } = await askAsOperator(values, terminal, clockTrustedSchema, question)
    const seconds = Math.round(Math.abs(movedMs) / 1_000)
    const moved =
      seconds === 0
        ? 'market time was right'
        : `market time went ${seconds} s ${movedMs < 0 ? 'back' : 'ahead'}`
    await write(terminal.stdout, `${moved}: it is ${new Date(marketTimeMs).toISOString()}\n`)
  },
}
