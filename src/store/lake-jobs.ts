// The jobs on the lake that HTTP clients ask for, each in a process of its own.
import { Exports } from './export/exports.ts'
import type { LakeJobBounds, LakeJobsOptions } from './lake-program.ts'
import { Queries, type QueryBounds } from './sql/queries.ts'

export class LakeJobs {
  readonly exports: Exports
  readonly queries: Queries

  /** Deletes what a crash has left of earlier jobs. @param bounds other ones than usual, for tests */
  constructor(lake: LakeJobsOptions, bounds: { exports?: LakeJobBounds; queries?: QueryBounds } = {}) {
    this.exports = new Exports(lake, bounds.exports)
    this.queries = new Queries(lake, bounds.queries)
  }

  /** Refuses further jobs, waits a while for those that run, then cancels them. May be called more than once. */
  async close(): Promise<void> {
    await Promise.all([this.exports.close(), this.queries.close()])
  }
}
