// `lake catalog`: writes the catalog of a lake that was copied or moved, or whose catalog is missing.
import { relativePath } from '../../store/lake/lake-files.ts'
import { rewriteCatalog } from '../../store/query/lake-catalog.ts'
import type { Command, Values } from '../command.ts'
import { counted, DATA_DIR, dataDirOf, FORMAT, writeFound } from '../common.ts'
import type { Terminal } from '../terminal.ts'

async function run(values: Values, terminal: Terminal): Promise<undefined> {
  const { path, files, rows, missing } = await rewriteCatalog(
    dataDirOf(values, terminal),
    terminal.clock.now(),
  )
  const lost = missing.map((part) => relativePath(part))
  const text = [
    `${path}: ${counted(files, 'file')}, ${counted(rows, 'row')}`,
    ...lost.map((name) => `${name}: missing or damaged, left out`),
    '',
  ].join('\n')
  await writeFound(values, terminal, { path, files, rows, missing: lost }, text)
}

export const lakeCatalogCommand: Command = {
  name: 'lake catalog',
  summary: 'Write a new catalog for a lake that was copied or moved',
  options: { format: FORMAT, 'data-dir': DATA_DIR },
  notes: [
    'A catalog names its files by absolute paths, since readers attach it from any folder: one that was copied reads the',
    'files of the original. Mintlake’s own commands do not: they read the folder that they are given. A server writes the',
    'catalog by itself, at its start and after every flush.',
  ],
  run,
}
