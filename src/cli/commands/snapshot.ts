// `lake snapshot NAME`: keeps the current state of the lake under a name.
import { pinLake } from '../../store/query/lake-pin.ts'
import { type Command, requiredValue, type Values } from '../command.ts'
import { counted, DATA_DIR, dataDirOf, FORMAT, writeFound } from '../common.ts'
import type { Terminal } from '../terminal.ts'

async function run(values: Values, terminal: Terminal): Promise<undefined> {
  const pinned = await pinLake(
    dataDirOf(values, terminal),
    requiredValue(values, 'NAME'),
    terminal.clock.now(),
  )
  const { path, files, rows, bytes, rowsLost } = pinned
  const lost =
    rowsLost === 0 ? '' : `; ${counted(rowsLost, 'row')} were lost with files before: see lake_set_aside`
  const text = `${path}: ${counted(files, 'file')}, ${counted(rows, 'row')}, ${counted(bytes, 'byte')}${lost}\n`
  await writeFound(values, terminal, pinned, text)
}

export const lakeSnapshotCommand: Command = {
  name: 'lake snapshot',
  summary:
    'Keep the lake of this moment under a name: what is merged, expires or comes later does not change it',
  operands: [{ name: 'NAME', description: 'its name: letters, digits, dot, dash and underscore' }],
  options: { format: FORMAT, 'data-dir': DATA_DIR },
  notes: [
    'Below snapshots/NAME of the data folder: links of the Parquet files, which cost room only once the lake has others in',
    'their place, a catalog of their own, and SHA256SUMS to cite. Read it with --data-dir, or attach its catalog. Remove the',
    'folder to give it up. Agents, keys and what is not in the lake yet are not in it: this is for papers, not a backup.',
  ],
  run,
}
