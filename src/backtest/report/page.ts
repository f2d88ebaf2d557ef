// The report as one page that needs no server and asks nobody for anything.
import { OUTCOMES } from '../../schema/vocabulary.ts'
import { AGENTS_DETAILED_MAX, PORTFOLIO_USD, STAKE_USD, TRADE_COST } from '../limits.ts'
import { columnChart, dotChart, escapeText, type Series, stepChart } from './charts.ts'
import type { AgentFigures, Report, Valued } from './figures.ts'
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

const STYLE = `:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--faint:#6b7280;--rule:#e2e5ea;
--c0:#2563eb;--c1:#d97706;--c2:#7c3aed;--c3:#0891b2;--c4:#be185d;--good:#16803c;--mid:#ca8a04;--bad:#c2261c}
@media (prefers-color-scheme:dark){:root{--ink:#e6e8eb;--paper:#14171a;--faint:#9aa2ad;--rule:#2b3036;--c0:#6ea8ff;--c1:#f0a94a;
--c2:#b296ff;--c3:#4cc9e0;--c4:#f27ab5;--good:#4ac26b;--mid:#e2b93b;--bad:#ff7b72}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin-bottom:.2rem}h2{margin-top:2.5rem;border-bottom:1px solid var(--rule)}h3{margin-bottom:.3rem}
p,.note{color:var(--faint)}table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}.wide{overflow-x:auto}
th,td{text-align:left;padding:.2rem 1rem .2rem 0;border-bottom:1px solid var(--rule);white-space:nowrap}th{font-weight:600}
.n{text-align:right}details{white-space:normal;width:15rem}td code{font-size:.8rem;overflow-wrap:anywhere}a{color:var(--c0)}
svg{width:100%;min-width:34rem;height:auto}svg text{font-size:11px;fill:var(--faint)}@media (max-width:40rem){svg text{font-size:15px}}
.grid{stroke:var(--rule)}.line{fill:none;stroke-width:2}.dot{fill-opacity:.6}.key span{display:inline-block;margin-right:1rem}.key i{display:inline-block;
width:.8rem;height:.8rem;border-radius:2px;margin-right:.35rem;vertical-align:-1px;background:currentColor}
${['c0', 'c1', 'c2', 'c3', 'c4', 'good', 'mid', 'bad'].map((name) => `.line.${name}{stroke:var(--${name})}.dot.${name},.area.${name}{fill:var(--${name})}i.${name}{color:var(--${name})}`).join('')}`

const COLOURS = ['c0', 'c1', 'c2', 'c3', 'c4']
const colourOf = (index: number): string => COLOURS[index % COLOURS.length] ?? 'c0'
const OUTCOME_COLOURS = { validated: 'good', unvalidated: 'mid', rejected: 'bad' } as const

const NUMBER = /^(–|[+-]?\d[\d .]*( %)?)$/

/** Columns that have numbers alone are aligned at their right. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const areNumbers = head.map((_, column) => rows.every((cells) => NUMBER.test(cells[column] ?? '')))
  const row = (cells: readonly string[], tag: string): string =>
    `<tr>${cells.map((cell, column) => `<${tag}${areNumbers[column] ? ' class="n"' : ''}>${cell}</${tag}>`).join('')}</tr>`
  const body = rows.map((cells) => row(cells, 'td')).join('')
  return `<div class="wide"><table><thead>${row(head, 'th')}</thead><tbody>${body}</tbody></table></div>`
}
const key = (entries: readonly { name: string; colour: string }[]): string =>
  `<p class="key">${entries.map(({ name, colour }) => `<span><i class="${colour}"></i>${escapeText(name)}</span>`).join('')}</p>`

export function pageReport(report: Report): string {
  const { agents, market, run } = report
  const detailed = { ...report, agents: agents.slice(0, AGENTS_DETAILED_MAX) }
  const title = `Backtest of ${utc(market.fromMs)} to ${utc(market.toMs)}`
  const notes = [
    ...(market.simulated ? ['The market is SIMULATED: no token or trade here is real.'] : []),
    ...market.notes,
    `${run.steps} steps in ${duration(run.playedMs)}, ${wholeNumber(run.speed)} times as fast as the market was; ${run.sentence}`,
  ]
  const more = moreOf(agents)
    .map((note) => `<p>${note}</p>`)
    .join('')
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"><title>${escapeText(title)}</title>
<style>${STYLE}</style><h1>${escapeText(title)}</h1>${notes.map((note) => `<p>${escapeText(note)}</p>`).join('')}
${summary(agents)}${more}${sharedCharts(detailed)}${detailed.agents.map((agent) => agentSection(agent, detailed)).join('')}${method()}</html>\n`
}

const summary = (agents: readonly AgentFigures[]): string =>
  table(
    [
      'Agent',
      'XP',
      'Accepted',
      'Validated',
      'Rejected',
      'Tokens',
      'Deviation, median',
      'Submissions an hour',
    ],
    agents.map((agent, index) => [
      index < AGENTS_DETAILED_MAX
        ? `<a href="#agent${index}">${escapeText(agent.name)}</a>`
        : escapeText(agent.name),
      ...summaryCells(agent),
    ]),
  )

function sharedCharts({ agents, market }: Report): string {
  const span = { fromMs: market.fromMs, toMs: market.toMs }
  const seriesOf = (pointsOf: (agent: AgentFigures) => Series['points']): Series[] =>
    agents.map((agent, index) => ({ name: agent.name, colour: colourOf(index), points: pointsOf(agent) }))
  const xp = seriesOf(({ xpCurve }) => xpCurve.map(({ atMs, xp: value }) => ({ atMs, value })))
  const values = seriesOf(
    ({ portfolio }) => portfolio?.curve.map(({ atMs, usd: value }) => ({ atMs, value })) ?? [],
  )
  const money = { ...span, toMs: market.playedToMs, start: PORTFOLIO_USD }
  return `<h2>Over time</h2>${key(xp)}<h3>XP</h3>${stepChart('XP over time', xp, { ...span, start: 0 })}
<h3>Paper portfolio, USD</h3>${stepChart('Value of a paper portfolio over time', values, money)}`
}

function agentSection(agent: AgentFigures, { agents, market }: Report): string {
  const id = agents.indexOf(agent)
  const span = { fromMs: market.fromMs, toMs: market.toMs }
  const kinds = OUTCOMES.map((name) => ({ name, colour: OUTCOME_COLOURS[name] }))
  const dots = agent.outcomes.map(({ atMs, outcome, deviationPct }) => ({
    atMs,
    value: deviationPct,
    colour: OUTCOME_COLOURS[outcome],
    name: `${outcome}, ${deviationPct.toFixed(2)} %`,
  }))
  const high = Math.max(1, Math.min(100, agent.deviationPct?.max ?? 1))
  const end = endOf(agent)
  const refused = refusedOf(agent)
  const { bullish, bearish, neutral } = agent.bySentiment
  return `<h2 id="agent${id}">${escapeText(agent.name)}</h2>
${agent.isBaseline ? '' : `<p><code>${escapeText(agent.words.join(' ') || agent.name)}</code>${end === null ? '' : `, which ${end}`}</p>`}
<p>${bullish} bullish, ${bearish} bearish, ${neutral} neutral.${refused === null ? '' : ` ${escapeText(refused)}.`}</p>${key(kinds)}
<h3>Outcomes of submissions</h3>${columnChart('Outcomes over time', kinds, agent.outcomeCounts, span)}
<h3>Deviation, percent</h3>${dotChart('Deviation over time', dots, { ...span, high, unit: ' %' })}
${agent.tooFew === null ? judgement(agent, market.simulated) : `<p>${escapeText(agent.tooFew)}</p>`}`
}

function judgement(agent: AgentFigures, isSimulated: boolean): string {
  const groups = agent.groups.filter(({ ret }) => ret.count > 0)
  const rows = (kind: 'sentiment' | 'score') =>
    table(
      [
        kind === 'sentiment' ? 'Sentiment' : 'Score',
        'After',
        'Calls',
        'Tokens',
        'Mean return',
        'Came true',
        'Base rate',
      ],
      groups
        .filter((group) => group.kind === kind)
        .map((group) => [
          group.label,
          group.horizon,
          `${group.ret.count}`,
          `${group.ret.tokens}`,
          returnOf(group),
          hitsOf(group),
          baseRateOf(group),
        ]),
    )
  const { portfolio } = agent
  const money =
    portfolio === null
      ? ''
      : `<h3>Paper portfolio</h3><p>$${wholeNumber(portfolio.endUsd)} of $${wholeNumber(PORTFOLIO_USD)} after ${portfolio.purchases} purchases, each
held ${portfolio.horizon}; largest fall from a high ${percent(portfolio.drawdown)}, turnover ${portfolio.turnoverPerDay.toFixed(1)} times the beginning a day.</p>`
  const listed = (title: string, calls: readonly Valued[]) =>
    calls.length === 0 ? '' : `<h3>${title}</h3>${callTable(calls, isSimulated)}`
  return `<h3>By sentiment</h3>${rows('sentiment')}<h3>By score</h3>${rows('score')}${money}
${listed('Best calls', agent.best)}${listed('Worst calls', agent.worst)}`
}

const callTable = (calls: readonly Valued[], isSimulated: boolean): string =>
  table(
    ['Gain', 'Token', 'Time, UTC', 'Said', 'Price, USD', 'Analysis'],
    calls.map((call) => {
      const label = escapeText(`${call.symbol} · ${call.name}`.slice(0, 60))
      const link = `https://solscan.io/token/${encodeURIComponent(call.mint)}`
      const token = isSimulated ? label : `<a href="${link}" rel="noreferrer">${label}</a>`
      const words = `<details><summary>${token}</summary><code>${escapeText(call.mint)}</code><br>${escapeText(call.summary)}</details>`
      return [
        signedPercent(call.gain),
        words,
        utc(call.atMs).replace(' UTC', ''),
        `${call.sentiment} ${call.score}`,
        call.priceUsd === null ? '–' : call.priceUsd.toPrecision(4),
        `<a id="${call.analysisId}" href="#${call.analysisId}"><code>${call.analysisId}</code></a>`,
      ]
    }),
  )

const method =
  (): string => `<h2>How to read it</h2><p>A return is the price after the horizon divided by the price at the submission, minus 1.
A call came true if it was bullish and the price rose, or bearish and it fell; neutral calls foretell no direction. The base rate is how often the
same sentiments would have come true of this agent’s calls at random. Intervals in brackets hold 95 % of a bootstrap that draws whole tokens, since
calls on one token share its price. Where there are fewer than 20 calls or 10 tokens nothing is said. The paper portfolio begins with
$${wholeNumber(PORTFOLIO_USD)}, puts $${STAKE_USD} on each bullish call and sells it after the horizon; each purchase and each sale costs
${percent(TRADE_COST)}, fees and slippage together. Bearish calls are not traded. It may always buy until everything is lost, with which
it ends, and its trades move no price.</p>`
