// The report as text for a terminal.
import Table from 'cli-table3'
import { AGENTS_DETAILED_MAX } from '../limits.ts'
import type { AgentFigures, Report } from './figures.ts'
import {
  baseRateOf,
  duration,
  endOf,
  hitsOf,
  moreOf,
  percent,
  refusedOf,
  returnOf,
  signedPercent,
  summaryCells,
  utc,
  wholeNumber,
} from './format.ts'

const EDGES =
  'top top-left top-mid top-right bottom bottom-left bottom-mid bottom-right left-mid mid mid-mid right right-mid'
/** Without lines. */
const PLAIN = {
  chars: { ...Object.fromEntries(EDGES.split(' ').map((name) => [name, ''])), left: '  ', middle: '  ' },
  style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
}

function table(head: string[], rows: string[][]): string {
  const made = new Table({ head, ...PLAIN })
  made.push(...rows)
  return made.toString()
}

const LISTED = 5

/** What strangers wrote, without what a terminal would obey. */
const printable = (text: string): string => text.replace(/\p{C}/gu, ' ')

export function textReport(report: Report): string {
  const { market, run } = report
  const agents = report.agents.map((agent) => ({ ...agent, name: printable(agent.name) }))
  const lines = [
    `Backtest of ${utc(market.fromMs)} to ${utc(market.toMs)} (${duration(market.toMs - market.fromMs)}${market.simulated ? ', a SIMULATED market' : ''})`,
    `${run.steps} steps in ${duration(run.playedMs)}: ${wholeNumber(run.speed)} times as fast; ${run.sentence}`,
    ...market.notes,
    '',
    table(
      ['agent', 'XP', 'accepted', 'validated', 'rejected', 'tokens', 'deviation', 'an hour'],
      agents.map((agent) => [agent.name, ...summaryCells(agent)]),
    ),
    ...moreOf(agents),
    ...agents.slice(0, AGENTS_DETAILED_MAX).flatMap(agentText),
  ]
  return `${lines.join('\n')}\n`
}

function agentText(agent: AgentFigures): string[] {
  const end = endOf(agent)
  const refused = refusedOf(agent)
  const head = [
    '',
    `${agent.name}${end === null ? '' : ` (${end})`}`,
    ...(refused === null ? [] : [`  ${refused}`]),
  ]
  const { portfolio, tooFew } = agent
  if (tooFew !== null || portfolio === null) return [...head, `  ${tooFew}`]
  const groups = agent.groups.filter(({ ret }) => ret.count > 0)
  const calls = agent.isBaseline
    ? []
    : (['best', 'worst'] as const).flatMap((which) => [
        `  ${which} calls, ${portfolio.horizon} later`,
        table(
          ['call', 'token', 'said', 'gain'],
          agent[which]
            .slice(0, LISTED)
            .map(({ analysisId, symbol, sentiment, score, gain }) => [
              analysisId,
              printable(symbol),
              `${sentiment} ${score}`,
              signedPercent(gain),
            ]),
        ),
      ])
  return [
    ...head,
    table(
      ['calls', 'after', 'number', 'mean return', 'came true', 'base rate'],
      groups.map((group) => [
        `${group.kind === 'score' ? 'score ' : ''}${group.label}`,
        group.horizon,
        `${group.ret.count}`,
        returnOf(group),
        hitsOf(group),
        baseRateOf(group),
      ]),
    ),
    `  paper portfolio (bullish calls, held ${portfolio.horizon}, after costs): $${wholeNumber(portfolio.endUsd)} after ` +
      `${portfolio.purchases} purchases, drawdown ${percent(portfolio.drawdown)}, turnover ${portfolio.turnoverPerDay.toFixed(1)} a day`,
    ...calls,
  ]
}
