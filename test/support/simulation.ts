// The simulation as a program of its own: what it changes in the runtime stays there.
import { execFile } from 'node:child_process'

const PROGRAM = new URL('../../scripts/simulate.ts', import.meta.url).pathname

export interface Finished {
  code: number
  text: string
}

export const runSimulation = (...args: string[]): Promise<Finished> =>
  new Promise((resolve) => {
    const options = { maxBuffer: 1e7 }
    execFile(process.execPath, ['--no-warnings', PROGRAM, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), text: stdout + stderr }),
    )
  })
