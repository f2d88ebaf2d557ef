import type { z } from 'zod'
import { errorMessage } from '../lib/error-text.ts'
import { openStore, type Store } from '../store/store.ts'
import { Failure, UsageError, type Values } from './command.ts'
import { isFolderInUse, requireWritable, storeLogTo } from './common.ts'
import { REPAIR_TIMEOUT_MS } from './limits.ts'
import { type AnswerSchema, askAsOperator } from './server-client.ts'
import type { Terminal } from './terminal.ts'

/** What a store does by itself, or is asked for through the server that has it open. */
export interface StoreQuestion<Schema extends AnswerSchema> {
  here(store: Store): Promise<z.output<Schema>['data']>
  /** Where the server is asked, and what it answers. */
  path: string
  schema: Schema
  /** Gives up the request to a server. */
  signal?: AbortSignal
}

/** Opens the store of a stopped server, which completes what a crash left, and has it answer; else asks the server that has it. */
export async function askStoreOrServer<Schema extends AnswerSchema>(
  values: Values,
  terminal: Terminal,
  dataDir: string,
  { here, path, schema, signal }: StoreQuestion<Schema>,
): Promise<z.output<Schema>['data']> {
  try {
    requireWritable(dataDir)
    // Without a cooldown and a delay of labels: those that the server ran with are kept in the folder.
    const { clock } = terminal
    const store = await openStore({ dataDir, lakeFlushMs: 0, clock, log: storeLogTo(terminal) })
    return await here(store).finally(() => store.close())
  } catch (error) {
    if (!isFolderInUse(error)) throw error
    const question = { path, body: { dataDir }, timeoutMs: REPAIR_TIMEOUT_MS, signal }
    return await askAsOperator(values, terminal, schema, question).catch((failure: unknown) => {
      // What has the folder may be no server, but another command.
      if (failure instanceof Failure || failure instanceof UsageError)
        failure.message = `${errorMessage(error)}; ${failure.message}`
      throw failure
    })
  }
}
