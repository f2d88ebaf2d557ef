// `sql`: runs a read-only query on the lake. The server may be running.
import { readBounded } from '../../lib/text/bounded-text.ts'
import {
  isInterrupted,
  isMissingFileError,
  type LakeReader,
  type QueryResult,
  toUnreadable,
  withLakeReader,
} from '../../store/query/lake-reader.ts'
import { makeSampleFolder } from '../../store/query/sample-lake.ts'
import { type Command, requiredValue, UsageError, type Values, wordValue } from '../command.ts'
import { DATA_DIR, dataDirOf, filesReplaced, numberOption, timeoutMs, warnOfLost } from '../common.ts'
import { QUERY_SECONDS_MAX_DEFAULT, SQL_BYTES_MAX } from '../limits.ts'
import { explainMissingLabels } from '../missing-labels.ts'
import { ROW_FORMAT, ROW_FORMATS, writeRows } from '../rows.ts'
import { Stop } from '../stop.ts'
import { type Terminal, write } from '../terminal.ts'

async function readSql(sent: string, terminal: Terminal): Promise<string> {
  if (sent !== '-') return sent
  const bytes = await readBounded(terminal.stdin, SQL_BYTES_MAX)
  if (bytes === null) throw new UsageError(`the query is longer than ${SQL_BYTES_MAX} bytes`)
  return bytes.toString()
}

/** Ends the rows where the command is stopped. Once a batch was written the query cannot be retried. */
function watched({ columns, batches }: QueryResult, stop: Stop): QueryResult {
  async function* pass() {
    let isWritten = false
    try {
      for await (const batch of batches) {
        stop.check()
        yield batch
        isWritten = true
      }
    } catch (error) {
      if (!isWritten || !isMissingFileError(error)) throw error
      throw filesReplaced()
    }
  }
  return { columns, batches: pass() }
}

/** Runs `work` with the data folder to query: the one that is named, or one with the sample, removed afterwards. */
async function withDataDir<Result>(
  values: Values,
  terminal: Terminal,
  work: (dataDir: string) => Promise<Result>,
): Promise<Result> {
  if (values.sample !== 'true') return work(dataDirOf(values, terminal))
  if (values['data-dir'])
    throw new UsageError('--sample and --data-dir name two lakes: leave one of them out')
  const sample = await makeSampleFolder()
  try {
    return await work(sample.dataDir)
  } finally {
    await sample.remove()
  }
}

async function run(values: Values, terminal: Terminal): Promise<undefined> {
  const sql = await readSql(requiredValue(values, 'QUERY'), terminal)
  const stop = new Stop(terminal, timeoutMs(values))
  const ask = async (reader: LakeReader) => {
    stop.check()
    await warnOfLost(reader, terminal)
    stop.act = () => reader.interrupt()
    const answer = await reader.query(sql)
    const format = wordValue(values, 'format', ROW_FORMATS)
    // Before the first row: behind it nothing may read the lake, as all of this is done again where files were replaced.
    const why = await explainMissingLabels(await reader.connect(), sql)
    stop.check()
    await writeRows(watched(answer, stop), format, terminal.stdout)
    if (why !== null) await write(terminal.stderr, `mintlake: ${why}\n`)
  }
  const query = () =>
    withDataDir(values, terminal, (dataDir) =>
      withLakeReader({ dataDir }, ask).catch((error) => Promise.reject(toUnreadable(error))),
    )
  await stop.during(query, isInterrupted)
}

export const sqlCommand: Command = {
  name: 'sql',
  summary: 'Query the lake with DuckDB’s SQL, read-only; the server may be running',
  operands: [{ name: 'QUERY', description: 'the query; - reads it from the standard input' }],
  options: {
    format: ROW_FORMAT,
    timeout: numberOption('SECONDS', QUERY_SECONDS_MAX_DEFAULT, 'Time limit; 0: none'),
    sample: { description: 'Query the sample that comes with Mintlake, instead of a lake' },
    'data-dir': DATA_DIR,
  },
  notes: [
    'mintlake sql "SELECT mint, count(*) AS n FROM training GROUP BY mint ORDER BY n DESC LIMIT 10"',
    'mintlake sql --sample "SELECT sentiment, avg(fwd_ret_24h) FROM labelled GROUP BY 1"',
    'mintlake sql "SHOW TABLES"; mintlake sql "DESCRIBE training"',
    'Several statements may stand one after another; the last one’s rows are written. Temporary tables are allowed.',
  ],
  run,
}
