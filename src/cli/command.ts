// Describes commands as data. Command lines are parsed against that data, and `--help` is generated from it.
import { parseArgs } from 'node:util'
import { assert } from '../lib/assert.ts'
import { errorMessage } from '../lib/error-text.ts'
import { didYouMean } from '../lib/text/nearest-word.ts'
import { repeatedFlag, wrongFlags } from '../lib/wrong-flags.ts'
import type { Terminal } from './terminal.ts'

/** An option, given as `--name` or `--name VALUE`. */
export interface Option {
  /** Placeholder of its value in the help, in capitals. Without one the option is a switch. */
  value?: string
  otherwise?: string
  isRequired?: true
  allowed?: readonly string[]
  description: string
}

export type Values = Readonly<Record<string, string>>

export interface Command {
  /** One or two words, such as `lake verify`. */
  name: string
  summary: string
  operands?: readonly { name: string; description: string }[]
  options: Readonly<Record<string, Option>>
  /** Settings that went, and the end of the sentence that answers each. */
  replaced?: Readonly<Record<string, string>>
  /** What the words behind `--` are, each `--` of their own: programs to run. Without it the command takes none. */
  programs?: { name: string; description: string }
  /** More lines for its help. */
  notes?: readonly string[]
  /** Resolves with the exit code, where it is not always `done`. The value of a switch that was given is 'true'. */
  run(
    values: Values,
    terminal: Terminal,
    programs: readonly (readonly string[])[],
  ): Promise<number | undefined>
}

export const EXIT = { done: 0, failed: 1, usage: 2, timedOut: 124, interrupted: 130 } as const

/** The command line is wrong. The message is shown to the user, with the command whose help tells more, where one was named. */
export class UsageError extends Error {
  command?: Command
}

/** The command cannot be carried out. The message is shown to the user. */
export class Failure extends Error {}

const SWITCH_HELP: Option = { description: 'Show this help' }
const optionsOf = (command: Command): Record<string, Option> => ({ ...command.options, help: SWITCH_HELP })

/** Finds the command that a command line begins with, and its remaining words. Returns null when it names none. */
export function findCommand(
  commands: readonly Command[],
  args: readonly string[],
): { command: Command; rest: readonly string[] } | null {
  for (const words of [2, 1]) {
    const command = commands.find(({ name }) => name === args.slice(0, words).join(' '))
    if (command !== undefined) return { command, rest: args.slice(words) }
  }
  return null
}

/** The error for a command line that names no command, with the most similar command as a suggestion. */
export function unknownCommand(commands: readonly Command[], args: readonly string[]): UsageError {
  const words = args.filter((arg) => !arg.startsWith('-')).slice(0, 2)
  const names = commands.map(({ name }) => name)
  const group = names.filter((name) => name.startsWith(`${words[0]} `))
  if (group.length > 0 && words.length === 1)
    return new UsageError(`mintlake ${words[0]} needs one of: ${group.join(', ')}`)
  const sent = words.join(' ')
  const known = [...names, ...names.flatMap((name) => name.split(' ', 1))]
  return new UsageError(`there is no command "${sent}"${didYouMean(sent, known, (name) => `"${name}"`)}`)
}

function wrongFlag(command: Command, args: readonly string[]): UsageError | null {
  const names = Object.keys(optionsOf(command))
  const flags = args.filter((arg) => /^--\w/.test(arg)).flatMap((arg) => arg.slice(2).split('=', 1))
  const unknown = flags.find((flag) => !names.includes(flag))
  if (unknown === undefined) return null
  const instead = command.replaced?.[unknown]
  if (instead !== undefined) return new UsageError(`--${unknown} is no setting any more: ${instead}`)
  const meant = didYouMean(unknown, names, (name) => `--${name}`)
  const has = `: it has ${names.map((name) => `--${name}`).join(', ')}`
  return new UsageError(`--${unknown} is no flag of mintlake ${command.name}${meant || has}`)
}

function checkValue(name: string, option: Option, value: string | undefined): string {
  if (value === undefined) {
    if (option.isRequired) throw new UsageError(`--${name} ${option.value} is missing`)
    return option.otherwise ?? ''
  }
  // A script's variable that is not set: taken as no flag it would make a command wider, such as the revocation of one key.
  if (value === '') throw new UsageError(`--${name} is empty: leave it out, or give it a value`)
  if (option.allowed === undefined || option.allowed.includes(value)) return value
  throw new UsageError(
    `--${name}: "${value}" is not one of ${option.allowed.join(', ')}${didYouMean(value, option.allowed)}`,
  )
}

/**
 * Puts `--` before words that begin with a dash and are no flags. SQL may begin with a comment (`-- …`), and no flag
 * has a space in its name.
 */
function flagsFirst(args: readonly string[], names: readonly string[]): string[] {
  const end = args.includes('--') ? args.indexOf('--') : args.length
  const isQuery = (arg: string): boolean =>
    /^--?/.test(arg) && /\s/.test(arg) && !names.some((name) => arg.startsWith(`--${name}=`))
  const flags = args.slice(0, end)
  return [...flags.filter((arg) => !isQuery(arg)), '--', ...flags.filter(isQuery), ...args.slice(end + 1)]
}

function parse(command: Command, args: readonly string[]) {
  const options = Object.fromEntries(
    Object.entries(optionsOf(command)).map(([name, { value }]) => [
      name,
      { type: value === undefined ? ('boolean' as const) : ('string' as const) },
    ]),
  )
  try {
    const words = flagsFirst(args, Object.keys(options))
    return parseArgs({ args: words, options, strict: true, allowPositionals: true, tokens: true })
  } catch (error) {
    const takesValue = (name: string): boolean | undefined => options[name] && options[name].type === 'string'
    throw (
      wrongFlag(command, args) ?? new UsageError(wrongFlags(args, takesValue, true) ?? errorMessage(error))
    )
  }
}

/** The words before the first `--`, and those between each and the next: the command lines of programs. */
export function splitPrograms(args: readonly string[]): { own: string[]; programs: string[][] } {
  const [own = [], ...programs] = args.reduce<string[][]>(
    (parts, word) => {
      if (word === '--') parts.push([])
      else parts.at(-1)?.push(word)
      return parts
    },
    [[]],
  )
  return { own, programs }
}

/** Parses the words behind the command. Returns null when they ask for help. @throws UsageError */
export function readValues(command: Command, args: readonly string[]): Values | null {
  const { values, positionals, tokens } = parse(command, args)
  if (values.help) return null
  const repeated = repeatedFlag(tokens)
  if (repeated !== null) throw new UsageError(repeated)
  const { operands = [] } = command
  if (positionals.length > operands.length)
    throw new UsageError(`mintlake ${command.name} takes no "${positionals[operands.length]}"`)
  const read: Record<string, string> = {}
  for (const [index, { name, description }] of operands.entries()) {
    const value = positionals[index]
    if (value === undefined) throw new UsageError(`${name} is missing: ${description}`)
    read[name] = value
  }
  for (const [name, option] of Object.entries(command.options)) {
    const value = values[name]
    read[name] = typeof value === 'boolean' ? String(value) : checkValue(name, option, value)
  }
  return read
}

/** The value of an operand or option that the command has; '' for an option that was not given and has no default. */
export function requiredValue(values: Values, name: string): string {
  const value = values[name]
  assert(value !== undefined, `the command has an operand or option ${name}`)
  return value
}

/** The value of an option that takes one of `allowed` only. */
export function wordValue<Word extends string>(values: Values, name: string, allowed: readonly Word[]): Word {
  const word = allowed.find((each) => each === values[name])
  assert(word !== undefined, `--${name} was checked against its allowed values`)
  return word
}

const columns = (rows: readonly (readonly [string, string])[]): string => {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join('\n')
}

function optionRow([name, { value, otherwise, isRequired, allowed, description }]: [string, Option]): [
  string,
  string,
] {
  const words = allowed === undefined ? '' : ` (${allowed.join(', ')})`
  const standard = otherwise ? ` [${otherwise}]` : isRequired ? ' [required]' : ''
  return [`--${name}${value === undefined ? '' : ` ${value}`}`, `${description}${words}${standard}`]
}

const spelled = ({ name, operands = [] }: Command): string =>
  [name, ...operands.map((operand) => operand.name)].join(' ')

/** The help text of one command. */
export function usageOf(command: Command): string {
  const { operands = [] } = command
  const programs = command.programs === undefined ? '' : ` [-- ${command.programs.name} …]`
  const rows: [string, string][] = [
    ...operands.map(({ name, description }): [string, string] => [name, description]),
    ...Object.entries(optionsOf(command)).map(optionRow),
    ...(command.programs
      ? [[`-- ${command.programs.name}`, command.programs.description] as [string, string]]
      : []),
  ]
  const notes = command.notes === undefined ? '' : `\n\n${command.notes.join('\n')}`
  return `${command.summary}\n\nmintlake ${spelled(command)} [flags]${programs}\n\n${columns(rows)}${notes}`
}

/** The help text that lists all commands. */
export function usageOfAll(commands: readonly Command[]): string {
  const rows = commands.map((command): [string, string] => [spelled(command), command.summary])
  return `mintlake: a streaming market-data engine with an embedded analytics store

${columns(rows)}

mintlake COMMAND --help lists its flags, mintlake --version tells the version. Exit codes: 0 done, 1 failed, 2 wrong command line, 124 timed out,
130 interrupted.`
}
