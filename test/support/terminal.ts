// Runs a command line in this process and returns its output and exit code.
import { Readable, Writable } from 'node:stream'
import { main } from '../../src/cli/main.ts'
import { systemClock } from '../../src/lib/clock.ts'

export interface CommandResult {
  code: number
  out: string
  err: string
}

function collector(onChunk: () => void = () => {}): { stream: Writable; text(): string } {
  const chunks: Buffer[] = []
  const stream = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(Buffer.from(chunk))
      onChunk()
      done()
    },
  })
  return { stream, text: () => Buffer.concat(chunks).toString() }
}

/** Runs `mintlake <args>` in this process. @param onOutput called whenever something is written to the standard output
 *  @param interrupt aborted when the user interrupts it */
export async function runCommand(
  args: readonly string[],
  env: Record<string, string> = {},
  input = '',
  onOutput?: () => void,
  interrupt?: AbortSignal,
): Promise<CommandResult> {
  const [out, err] = [collector(onOutput), collector()]
  const code = await main(args, {
    stdin: Readable.from([Buffer.from(input)]),
    stdout: out.stream,
    stderr: err.stream,
    env,
    isWatched: false,
    clock: systemClock,
    onInterrupt(act) {
      interrupt?.addEventListener('abort', act)
      return () => interrupt?.removeEventListener('abort', act)
    },
  })
  return { code, out: out.text(), err: err.text() }
}
