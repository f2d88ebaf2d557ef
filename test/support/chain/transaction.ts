// Transactions as endpoints tell of them: a log with its stack of invocations, and the inner instructions.

import { hash } from 'node:crypto'
import { base58 } from '@scure/base'

export interface TestEvent {
  program: string
  bytes: Buffer
}

export interface TestTransaction {
  slot: number
  signature: string
  failed: boolean
  logs: string[]
  events: readonly TestEvent[]
}

const ROUTER = 'JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4'
const LOG_BYTES_MAX = 10_000
export const signatureOf = (name: string): string =>
  base58.encode(Buffer.concat([hash('sha512', name, 'buffer')])).slice(0, 87)

export interface TransactionOptions {
  failed?: boolean
  /** Inside another program's invocation. */
  isRouted?: boolean
  /** Bytes that another program logs first: with many the log is truncated. */
  noiseBytes?: number
}

/** The log as a node writes it: it ends where 10 000 bytes are reached. */
function logOf(
  events: readonly TestEvent[],
  { isRouted = false, noiseBytes = 0 }: TransactionOptions,
): string[] {
  const lines: string[] = []
  if (isRouted) lines.push(`Program ${ROUTER} invoke [1]`)
  for (let left = noiseBytes; left > 0; left -= 500)
    lines.push(`Program log: ${'x'.repeat(Math.min(left, 500))}`)
  const depth = isRouted ? 2 : 1
  for (const { program, bytes } of events) {
    lines.push(`Program ${program} invoke [${depth}]`)
    lines.push('Program log: Instruction: Buy')
    lines.push(`Program data: ${bytes.toString('base64')}`)
    lines.push(`Program ${program} invoke [${depth + 1}]`)
    lines.push(`Program ${program} consumed 2003 of 100000 compute units`)
    lines.push(`Program ${program} success`)
    lines.push(`Program ${program} success`)
  }
  if (isRouted) lines.push(`Program ${ROUTER} success`)
  let bytes = 0
  const end = lines.findIndex((line) => {
    bytes += line.length
    return bytes > LOG_BYTES_MAX
  })
  return end === -1 ? lines : [...lines.slice(0, end), 'Log truncated']
}

export const transactionOf = (
  name: string,
  slot: number,
  events: readonly TestEvent[],
  options: TransactionOptions = {},
): TestTransaction => ({
  slot,
  signature: signatureOf(name),
  failed: options.failed === true,
  logs: logOf(events, options),
  events,
})

export const logsNotification = ({ slot, signature, failed, logs }: TestTransaction, subscription = 1) => ({
  jsonrpc: '2.0',
  method: 'logsNotification',
  params: {
    result: {
      context: { slot },
      value: { signature, err: failed ? { InstructionError: [0, { Custom: 6002 }] } : null, logs },
    },
    subscription,
  },
})

/** As getTransaction answers. @param hasInstructions encoding them takes long, and the log has the same */
export function transactionAnswer(
  { slot, signature, failed, logs, events }: TestTransaction,
  hasInstructions = true,
) {
  const programs = [...new Set(events.map(({ program }) => program))]
  const instructions = (hasInstructions ? events : []).map(({ program, bytes }) => ({
    programIdIndex: 1 + programs.indexOf(program),
    accounts: [],
    data: base58.encode(Buffer.concat([Buffer.from('e445a52e51cb9a1d', 'hex'), bytes])),
    stackHeight: 2,
  }))
  return {
    slot,
    blockTime: Math.floor(slot / 2.5),
    transaction: {
      signatures: [signature],
      message: { accountKeys: [ROUTER, ...programs], instructions: [] },
    },
    meta: {
      err: failed ? { InstructionError: [0, { Custom: 6002 }] } : null,
      logMessages: logs,
      innerInstructions: [{ index: 0, instructions }],
      loadedAddresses: { writable: [], readonly: [] },
    },
    version: 0,
  }
}
