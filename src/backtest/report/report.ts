// Plays a backtest and writes its report.
import { type BacktestOptions, play } from '../backtest.ts'

export async function backtest(options: BacktestOptions): Promise<{ text: string; haveFailed: boolean }> {
  const played = await play(options)
  return { text: `${JSON.stringify(played, null, 2)}\n`, haveFailed: false }
}
