// Plays a backtest, and writes its report as text, JSON and a page.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type BacktestOptions, lacksOf, type Played, play } from '../backtest.ts'
import { readSaid } from './calls.ts'
import { figuresOf, type Report } from './figures.ts'
import { pageReport } from './page.ts'
import { textReport } from './text.ts'

/** @returns the report as text, and whether a program failed by itself */
export async function backtest(options: BacktestOptions): Promise<{ text: string; haveFailed: boolean }> {
  const played = await play(options)
  const report = await reportOf(played, options.seed)
  const text = textReport(report)
  const write = (name: string, content: string) => writeFile(join(options.outDir, name), content)
  await write('report.txt', text)
  await write('report.json', `${JSON.stringify(report, null, 2)}\n`)
  await write('report.html', pageReport(report))
  const haveFailed = played.competitors.some(({ end }) => end?.isEarly === true && end.code !== 0)
  return { text: `${text}\n${join(options.outDir, 'report.html')}\n`, haveFailed }
}

export async function reportOf(played: Played, seed: number): Promise<Report> {
  const { dataDir, fromMs, toMs, playedToMs, simulated, competitors, stats, events } = played
  const { marketMs, ...counted } = stats
  const said = await readSaid(dataDir)
  return {
    market: {
      fromMs,
      toMs,
      playedToMs,
      simulated,
      notes: notesOf(played),
    },
    agents: competitors.map((competitor) => figuresOf(competitor, said, { fromMs, toMs }, seed)),
    run: {
      ...counted,
      speed: marketMs / Math.max(1, counted.playedMs),
      events,
      sentence: sentenceOf(stats),
    },
  }
}

function notesOf(played: Played): string[] {
  const notes = lacksOf(played)
  if (played.isInterrupted)
    notes.push(
      'Interrupted: this is what was played until then. The last calls got no outcomes, since the market did not go on.',
    )
  return notes
}

function sentenceOf({ stepsCut, stepsMet, stepsInTurn }: Played['stats']): string {
  const cut =
    stepsCut === 0
      ? 'no step was cut short.'
      : `${stepsCut} were cut short, since a program was not silent within the time that a step waits (--step-wait-ms): it saw the market go on meanwhile.`
  const met =
    stepsMet + stepsInTurn === 0
      ? ''
      : ` Into ${stepsMet} a request came, and ${stepsInTurn} were taken while a program neither asked nor waited nor followed a stream: one that sleeps by its own clock, or thinks for longer than a step waits, sees another market each time. The client’s sleep() waits for market time; a longer --step-ms waits for slow programs.`
  return cut + met
}
