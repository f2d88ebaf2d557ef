// The command line of `mintlake backtest`.
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { findCommand, splitPrograms } from '../../src/cli/command.ts'
import { COMMANDS } from '../../src/cli/main.ts'
import { runCommand } from '../support/terminal.ts'
import { temporaryFolder } from '../support/test-server.ts'
import { folder, removeFolder } from './support.ts'

afterAll(removeFolder)

test('words behind each -- are the command line of a program, and flags of programs are theirs', () => {
  expect(splitPrograms(['--lake', 'x', '--', 'node', '--y', 'a', '--', 'python3', 'b'])).toEqual({
    own: ['--lake', 'x'],
    programs: [
      ['node', '--y', 'a'],
      ['python3', 'b'],
    ],
  })
  expect(findCommand(COMMANDS, ['backtest'])?.command.programs?.name).toBe('PROGRAM')
})

test.each([
  [['--lake', 'x'], 'has to follow behind --'],
  [['--lake', 'x', '--', '--', 'node'], 'has to follow behind --'],
  [['--', 'node'], '--lake FOLDER is missing'],
  [['--lake', 'x', '--speed', 'fast', '--', 'node'], '--speed'],
  [['--lake', '.', '--seed', '1000000000000000', '--', 'node'], 'whole number from 0 to 999999999999999'],
  [['--lake', 'x', '--labels-only', '--', 'node'], '--labels-only runs no program'],
  [['--lake', 'x', '--from', 'yesterday', '--out', 'out', '--', 'node'], '--from: "yesterday"'],
  [
    ['--lake', 'x', '--from', '2026-01-02', '--to', '2026-01-01', '--', 'node'],
    '--from must not be after --to',
  ],
])('%s is refused with what is wrong', async (args, sentence) => {
  const words = args.map((word) => (word === 'out' ? join(folder, 'refused') : word))
  const { code, err } = await runCommand(['backtest', ...words])
  expect(code).toBe(2)
  expect(err).toContain(sentence)
})

test('a folder that has no lake is told of', async () => {
  const args = ['backtest', '--lake', join(folder, 'nothing'), '--out', join(folder, 'none'), '--', 'node']
  const { code, err } = await runCommand(args)
  expect(code).toBe(1)
  expect(err).toContain('--lake: there is no folder')
})

test('a time may be any date: what is wrong is told of the lake', async () => {
  const span = ['--from', '1970-01-01', '--to', '9999-12-31']
  const lake = temporaryFolder()
  const args = ['backtest', '--lake', lake, ...span, '--out', join(lake, 'far'), '--', 'node']
  const { code, err } = await runCommand(args)
  rmSync(lake, { recursive: true })
  expect(err).toContain('there is no lake in')
  expect(code).toBe(1)
})

test('a lake may be in a folder whose name reads like settings', async () => {
  const parent = temporaryFolder()
  const lake = join(parent, 'seed=1,tokens=60, span=x')
  mkdirSync(lake)
  const args = ['backtest', '--lake', lake, '--out', join(parent, 'odd'), '--', 'node']
  const { code, err } = await runCommand(args)
  rmSync(parent, { recursive: true })
  expect(err).toContain(`there is no lake in ${lake}`)
  expect(code).toBe(1)
})
