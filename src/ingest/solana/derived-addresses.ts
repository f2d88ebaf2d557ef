import { hash } from 'node:crypto'
import { base58 } from '@scure/base'

/** The addresses that a program may derive from these seeds, one for each number of a byte, from the highest on. */
export function* derivedAddresses(program: string, seeds: readonly Uint8Array[]): Generator<Buffer> {
  const end = [base58.decode(program), Buffer.from('ProgramDerivedAddress')]
  for (let bump = 255; bump >= 0; bump--)
    yield hash('sha256', Buffer.concat([...seeds, Buffer.of(bump), ...end]), 'buffer')
}
