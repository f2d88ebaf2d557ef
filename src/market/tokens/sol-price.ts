// Every DataPoint shows the price of SOL, so its changes are counted: they are part of a DataPoint's version.

export class SolPrice {
  /** NaN while unknown. */
  usd = Number.NaN
  /** Who reported it last. */
  source = 'none'
  /** Market time of the last report, Unix ms. A report of the same price counts. */
  reportedAtMs = 0
  /** How often the price has changed, and when it last did. */
  changeCount = 0
  changedAtMs = 0

  set(usd: number, source: string, nowMs: number): void {
    this.source = source
    this.reportedAtMs = nowMs
    if (Object.is(usd, this.usd)) return
    this.usd = usd
    this.changedAtMs = nowMs
    this.changeCount++
  }
}
