// The `mintlake` command line: finds the command, runs it and returns its exit code. `serve` is run by scripts/mintlake.mjs.
import { ConfigError, refuseMisspeltEnv } from '../config/config.ts'
import { FIRST_SETTINGS } from '../config/setting-groups.ts'
import { SETTINGS } from '../config/settings.ts'
import { errorFirstLine, errorMessage, systemCode } from '../lib/error-text.ts'
import { MINTLAKE_VERSION } from '../lib/version.ts'
import { ServiceError } from '../schema/errors.ts'
import { isReadOnlyError } from '../store/duckdb/database.ts'
import { StoreError } from '../store/errors.ts'
import {
  type Command,
  EXIT,
  Failure,
  findCommand,
  type Option,
  readValues,
  splitPrograms,
  UsageError,
  unknownCommand,
  usageOf,
  usageOfAll,
} from './command.ts'
import { backtestCommand } from './commands/backtest.ts'
import { backupCommand, restoreCommand } from './commands/backup.ts'
import { captureCommand } from './commands/capture.ts'
import { lakeCatalogCommand } from './commands/catalog.ts'
import { clockTrustCommand } from './commands/clock.ts'
import { doctorCommand } from './commands/doctor.ts'
import { exportCommand } from './commands/export.ts'
import { lakeStatusCommand, lakeVerifyCommand } from './commands/lake.ts'
import { mcpCommand } from './commands/mcp.ts'
import { OPERATOR_COMMANDS } from './commands/operator.ts'
import { lakeRepairCommand, lakeRetireCommand } from './commands/repair.ts'
import { repairCommand } from './commands/repair-folder.ts'
import { lakeSnapshotCommand } from './commands/snapshot.ts'
import { sqlCommand } from './commands/sql.ts'
import { Stopped } from './stop.ts'
import { isPipeError, ReaderGone, type Terminal, write } from './terminal.ts'

/** The settings of the server that matter first, as flags of `serve`. */
const serverOptions = (): Record<string, Option> =>
  Object.fromEntries(
    FIRST_SETTINGS.map((name) => SETTINGS[name]).flatMap(({ flag, env, defaultText, description }) =>
      flag === null
        ? []
        : [[flag, { value: 'VALUE', otherwise: defaultText, description: `${description}; ${env}` }]],
    ),
  )

/** Only listed in the help: scripts/mintlake.mjs runs it before this file is loaded. */
const serve: Command = {
  name: 'serve',
  summary: 'Start the server, as npm start does',
  options: serverOptions(),
  notes: ['mintlake serve --help all lists all settings, by what they are for'],
  run: async () => EXIT.usage,
}

export const COMMANDS: readonly Command[] = [
  serve,
  sqlCommand,
  exportCommand,
  mcpCommand,
  lakeStatusCommand,
  lakeVerifyCommand,
  lakeCatalogCommand,
  lakeSnapshotCommand,
  lakeRepairCommand,
  lakeRetireCommand,
  clockTrustCommand,
  repairCommand,
  backupCommand,
  restoreCommand,
  captureCommand,
  backtestCommand,
  doctorCommand,
  ...OPERATOR_COMMANDS,
]

/** The command whose help tells of what is wrong, with a space behind it. */
const helpOf = (error: Error): string =>
  error instanceof UsageError && error.command !== undefined ? `${error.command.name} ` : ''

/** The message and exit code for an error. */
function failure(error: unknown): { message: string; code: number } {
  if (error instanceof ReaderGone || isPipeError(error)) return { message: '', code: EXIT.done }
  const message = errorMessage(error)
  if (error instanceof Stopped) return { message, code: EXIT[error.reason] }
  if (error instanceof UsageError || error instanceof ConfigError)
    return { message: `${message}\nsee mintlake ${helpOf(error)}--help`, code: EXIT.usage }
  // A query that is wrong is never about the disk, whatever its text quotes.
  const isWrongQuery = error instanceof StoreError && error.code === 'invalid'
  if (!isWrongQuery && isReadOnlyError(error))
    return {
      message: `the disk is read-only: nothing can be written (${errorFirstLine(error)})`,
      code: EXIT.failed,
    }
  if (error instanceof ServiceError || error instanceof StoreError || error instanceof Failure)
    return { message, code: EXIT.failed }
  if (systemCode(error) !== '') return { message, code: EXIT.failed }
  return { message: error instanceof Error ? (error.stack ?? message) : message, code: EXIT.failed }
}

async function carryOut(args: readonly string[], terminal: Terminal): Promise<number> {
  const asked = args[0] === 'help' ? [...args.slice(1), '--help'] : args
  const found = findCommand(COMMANDS, asked)
  if (found === null) {
    const first = asked[0] ?? '--help'
    if (!first.startsWith('-')) throw unknownCommand(COMMANDS, asked)
    if (first === '--version') {
      await write(terminal.stdout, `mintlake ${MINTLAKE_VERSION}\n`)
      return EXIT.done
    }
    if (first !== '--help' && first !== '-h') throw new UsageError(`${first} is no flag of mintlake`)
    await write(terminal.stdout, `${usageOfAll(COMMANDS)}\n`)
    return EXIT.done
  }
  try {
    return await runCommand(found.command, found.rest, terminal)
  } catch (error) {
    if (error instanceof UsageError) error.command ??= found.command
    throw error
  }
}

async function runCommand(command: Command, rest: readonly string[], terminal: Terminal): Promise<number> {
  const takesPrograms = command.programs !== undefined
  const { own, programs } = takesPrograms ? splitPrograms(rest) : { own: rest, programs: [] }
  const values = readValues(command, own)
  if (values !== null) {
    // Doctor has it among what it finds.
    if (command !== doctorCommand) refuseMisspeltEnv(terminal.env)
    return (await command.run(values, terminal, programs)) ?? EXIT.done
  }
  await write(terminal.stdout, `${usageOf(command)}\n`)
  return EXIT.done
}

/** Runs a command line. Resolves with the exit code. */
export async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    return await carryOut(args, terminal)
  } catch (error) {
    const { message, code } = failure(error)
    if (message !== '') terminal.stderr.write(`mintlake: ${message}\n`)
    return code
  }
}
