// Names a node on the bus, for as long as it runs.
import { randomBytes } from 'node:crypto'

const ID_BYTES = 8
const ID_DIGITS = 8

export const newNodeId = (): string =>
  BigInt(`0x${randomBytes(ID_BYTES).toString('hex')}`)
    .toString(36)
    .slice(0, ID_DIGITS)
