// The programs that are tested: started with an address and a key, and ended with their children.

import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { basename } from 'node:path'
import { errorMessage } from '../lib/error-text.ts'
import { within } from '../lib/wait.ts'
import { PROGRAM_STOP_MS_MAX } from './limits.ts'

export interface ProgramOptions {
  /** The command and its words. */
  words: readonly string[]
  name: string
  url: string
  key: string
  env: Readonly<Record<string, string | undefined>>
  /** Takes what it writes. */
  outputPath: string
}

/** How a program ended. */
export interface ProgramEnd {
  /** Null: a signal ended it. */
  code: number | null
  signal: string | null
  /** It ended by itself, before the market did. */
  isEarly: boolean
}

export class Program {
  readonly name: string
  readonly outputPath: string
  /** Resolves when it has ended. */
  readonly exited: Promise<void>
  end: ProgramEnd | null = null
  readonly #child: ChildProcess
  #isStopping = false

  private constructor(child: ChildProcess, { name, outputPath }: ProgramOptions) {
    this.name = name
    this.outputPath = outputPath
    this.#child = child
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.end = { code, signal, isEarly: !this.#isStopping }
        resolve()
      })
    })
  }

  /** @throws Error that says why it cannot be started */
  static async start(options: ProgramOptions): Promise<Program> {
    const [command = '', ...words] = options.words
    const output = openSync(options.outputPath, 'a')
    try {
      const child = spawn(command, words, {
        env: { ...withoutOwn(options.env), MINTLAKE_URL: options.url, MINTLAKE_KEY: options.key },
        stdio: ['ignore', output, output],
        // A group of its own, so that what it has started ends with it.
        detached: true,
      })
      const program = new Program(child, options)
      await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject))
      return program
    } catch (error) {
      throw new Error(`${options.words.join(' ')} cannot be started: ${errorMessage(error)}`, {
        cause: error,
      })
    } finally {
      closeSync(output)
    }
  }

  /** Asks it to end, and kills it where it does not. */
  async stop(): Promise<void> {
    this.#isStopping = true
    if (this.end === null) {
      this.#signal('SIGTERM')
      await within(PROGRAM_STOP_MS_MAX, this.exited)
    }
    // What it has started may have stayed.
    this.#signal('SIGKILL')
    await this.exited
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child
    if (pid === undefined) return
    try {
      process.kill(-pid, signal)
    } catch {
      // Nobody of the group is left.
    }
  }
}

/** Settings and keys of another server are not for it. */
const withoutOwn = (env: ProgramOptions['env']): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('MINTLAKE_')))

/** A name for each program: that of its script, or of its command. */
export function nameProgram(words: readonly string[], taken: readonly string[]): string {
  const script = words.slice(1).find((word) => /\.[a-z]+$/i.test(word) && !word.startsWith('-'))
  const name = basename(script ?? words[0] ?? 'program').slice(0, 48)
  let number = 1
  const numbered = (): string => (number === 1 ? name : `${name} ${number}`)
  while (taken.includes(numbered())) number++
  return numbered()
}
