// Tests of trade files as vendors write them: each is read as it is, without a mapping.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openTradeFile, type TradeFileOptions } from '../../src/ingest/replay/trade-file.ts'
import { readSql, removeFolder, temporaryFolder } from '../store/support.ts'

const T = 1_735_732_800_123 // 2025-01-01T12:00:00.123Z
const ISO = '2025-01-01T12:00:00.123456789Z'
type Trade = [
  tsMs: number,
  symbol: string,
  price: number,
  size: number,
  side?: string | null,
  tx?: string | null,
]

let folder: string
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => removeFolder(folder))

function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

async function read(path: string, options: Partial<TradeFileOptions> = {}): Promise<(Trade | string)[]> {
  const trades: (Trade | string)[] = []
  const { batches } = await openTradeFile({ path, ...options })
  for await (const batch of batches) {
    for (let row = 0; row < batch.rows; row++) {
      const fault = batch.faults.get(row)
      const symbol = batch.symbols[batch.symbolCode[row]]
      const trade: Trade = [batch.tsMs[row], symbol, batch.price[row], batch.size[row]]
      if (batch.side !== null) trade.push(batch.side[row])
      if (batch.tx !== null) trade.push(...(batch.side === null ? [null] : []), batch.tx[row])
      trades.push(fault?.reason ?? trade)
    }
  }
  return trades
}

const csv = (text: string, options: Partial<TradeFileOptions> = {}): Promise<(Trade | string)[]> =>
  read(file('trades.csv', text), options)
const json = (value: unknown, options: Partial<TradeFileOptions> = {}): Promise<(Trade | string)[]> =>
  read(file('trades.json', typeof value === 'string' ? value : JSON.stringify(value)), options)

describe('Binance', () => {
  const symbol = 'BTCUSDT'

  test('aggTrades of spot: no header, µs since 2025, the maker in True and False', async () => {
    const text = `3300001,93576.01,0.5,100,102,${T}456,True,True\n3300002,93577,0.25,103,103,${T + 1}000,False,True\n`
    expect(await csv(text, { symbol })).toEqual([
      [T, symbol, 93_576.01, 0.5, 'sell', '3300001'],
      [T + 1, symbol, 93_577, 0.25, 'buy', '3300002'],
    ])
  })

  test('trades of spot: no header, ms before 2025', async () => {
    const text = `4300001,93576.01,0.5,46788.005,${T},true,true\n4300002,93577,0.25,23394.25,${T + 1},false,true\n`
    expect(await csv(text, { symbol })).toEqual([
      [T, symbol, 93_576.01, 0.5, 'sell', '4300001'],
      [T + 1, symbol, 93_577, 0.25, 'buy', '4300002'],
    ])
  })

  test('aggTrades and trades of futures, with and without their header', async () => {
    const agg = `3300001,93576.01,0.5,100,102,${T},true\n`
    const trades = `4300001,93576.01,0.5,46788.005,${T},false\n`
    const aggHeader =
      'agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker\n'
    const tradesHeader = 'id,price,qty,quote_qty,time,is_buyer_maker\n'
    for (const text of [agg, aggHeader + agg])
      expect(await csv(text, { symbol })).toEqual([[T, symbol, 93_576.01, 0.5, 'sell', '3300001']])
    for (const text of [trades, tradesHeader + trades])
      expect(await csv(text, { symbol })).toEqual([[T, symbol, 93_576.01, 0.5, 'buy', '4300001']])
  })

  test('a month in which ms become µs has one time line', async () => {
    const text = `1,100,1,1,1,${T},True,True\n2,101,1,2,2,${T + 5}999,False,True\n`
    expect((await csv(text, { symbol })).map(([ts]) => ts)).toEqual([T, T + 5])
  })

  test('JSON of streams and of REST, in which t is an id and s the symbol', async () => {
    const stream = { e: 'trade', E: T + 9, s: symbol, t: 12345, p: '0.001', q: '100', T, m: true, M: true }
    const expected = [[T, symbol, 0.001, 100, 'sell', '12345']]
    expect(await json(stream)).toEqual(expected)
    expect(await json({ stream: 'btcusdt@trade', data: stream })).toEqual(expected)
    const rest = [{ a: 26129, p: '0.01633102', q: '4.70443515', f: 27781, l: 27781, T, m: false, M: true }]
    expect(await json(rest, { symbol })).toEqual([[T, symbol, 0.01633102, 4.70443515, 'buy', '26129']])
    const trades = [
      { id: 28457, price: '4.00000100', qty: '12', quoteQty: '48', time: T, isBuyerMaker: true },
    ]
    expect(await json(trades, { symbol })).toEqual([[T, symbol, 4.000001, 12, 'sell', '28457']])
  })
})

describe('Kraken', () => {
  test('CSV without a header: seconds, price, volume', async () => {
    const text = '1735732800,93576.01,0.5\n1735732800,93577.00000,0.25000000\n1735732801,93578,1\n'
    expect(await csv(text, { symbol: 'XBTUSD' })).toEqual([
      [1_735_732_800_000, 'XBTUSD', 93_576.01, 0.5],
      [1_735_732_800_000, 'XBTUSD', 93_577, 0.25],
      [1_735_732_801_000, 'XBTUSD', 93_578, 1],
    ])
  })

  test('the answer of REST: lists by pair', async () => {
    const trades = [
      ['93576.01000', '0.5', 1_735_732_800.1234567, 'b', 'l', '', 70_123_456],
      ['93577.00000', '0.25', 1_735_732_801.5, 's', 'm', '', 70_123_457],
    ]
    expect(await json({ error: [], result: { XXBTZUSD: trades, last: '1735732801500000000' } })).toEqual([
      [1_735_732_800_123, 'XXBTZUSD', 93_576.01, 0.5, 'buy', '70123456'],
      [1_735_732_801_500, 'XXBTZUSD', 93_577, 0.25, 'sell', '70123457'],
    ])
  })
})

describe('OKX', () => {
  const expected = [[T, 'BTC-USDT', 93_576.01, 0.5, 'sell', '600123']]

  test('CSV, today and with the names in two languages of before', async () => {
    expect(
      await csv(
        `instrument_name,trade_id,side,price,size,created_time\nBTC-USDT,600123,sell,93576.01,0.5,${T}\n`,
      ),
    ).toEqual(expected)
    const text = `trade_id/撮合id,side/交易方向,size/数量,price/价格,created_time/成交时间\n600123,SELL,0.5,93576.01,${T}\n`
    expect(await csv(text, { symbol: 'BTC-USDT' })).toEqual(expected)
    // Those files are in GBK: the translations are no text, the names before them are.
    const gbk = Buffer.from(text, 'latin1')
    expect(await read(file('gbk.csv', gbk), { symbol: 'BTC-USDT' })).toEqual(expected)
  })

  test('JSON of REST and of its WebSocket, newest first', async () => {
    const trade = {
      instId: 'BTC-USDT',
      tradeId: '600123',
      px: '93576.01',
      sz: '0.5',
      side: 'sell',
      ts: `${T}`,
    }
    const later = { ...trade, tradeId: '600124', ts: `${T + 7}`, side: 'buy' }
    const both = [...expected, [T + 7, 'BTC-USDT', 93_576.01, 0.5, 'buy', '600124']]
    expect(await json({ code: '0', msg: '', data: [later, trade] })).toEqual(both)
    expect(await json({ arg: { channel: 'trades', instId: 'BTC-USDT' }, data: [trade] })).toEqual(expected)
  })
})

describe('Alpaca', () => {
  const trade = { t: ISO, x: 'V', p: 243.85, s: 100, c: ['@', 'I'], i: 7161, z: 'C' }

  test('JSON of REST, of one symbol and of several, with s as the size', async () => {
    expect(await json({ trades: [trade], symbol: 'AAPL', next_page_token: null })).toEqual([
      [T, 'AAPL', 243.85, 100, null, '7161'],
    ])
    expect(
      await json({ next_page_token: null, trades: { AAPL: [trade], TSLA: [{ ...trade, p: 400 }] } }),
    ).toEqual([
      [T, 'AAPL', 243.85, 100, null, '7161'],
      [T, 'TSLA', 400, 100, null, '7161'],
    ])
  })

  test('JSON of its WebSocket and lines of it, in which s and S, t and T differ', async () => {
    const message = { T: 't', S: 'AAPL', ...trade }
    expect(await json([message])).toEqual([[T, 'AAPL', 243.85, 100, null, '7161']])
    const lines = [message, { ...message, s: 5, i: 7162 }].map((line) => JSON.stringify(line)).join('\n')
    expect(await read(file('trades.ndjson', lines))).toEqual([
      [T, 'AAPL', 243.85, 100, null, '7161'],
      [T, 'AAPL', 243.85, 5, null, '7162'],
    ])
  })

  test('CSV with t, p, s and S, and of its Python library', async () => {
    expect(await csv(`S,t,p,s,x\nAAPL,${ISO},243.85,100,V\n`)).toEqual([[T, 'AAPL', 243.85, 100]])
    expect(await csv(`t,p,s,x\n${ISO},243.85,100,V\n`, { symbol: 'AAPL' })).toEqual([
      [T, 'AAPL', 243.85, 100],
    ])
    const text = `symbol,timestamp,exchange,price,size,id,conditions,tape\nAAPL,2025-01-01 12:00:00.123456+00:00,V,243.85,100.0,7161,"['@', 'I']",C\n`
    expect(await csv(text)).toEqual([[T, 'AAPL', 243.85, 100, null, '7161']])
  })

  test('crypto says the taker’s side', async () => {
    const crypto = { t: ISO, p: 93_576, s: 0.5, tks: 'S', i: 5, S: 'BTC/USD' }
    expect(await json([crypto])).toEqual([[T, 'BTC/USD', 93_576, 0.5, 'sell', '5']])
  })
})

describe('Polygon', () => {
  test('flat files, which go back in time with each ticker, with ids of twenty digits', async () => {
    const header =
      'ticker,conditions,correction,exchange,id,participant_timestamp,price,sequence_number,sip_timestamp,size,tape,trf_id,trf_timestamp\n'
    const text = `${header}A,"12,37",0,11,52983525029461,${T}456789,135.2,1063,${T + 1}000000,1,1,0,0
A,,0,11,52983525029462,${T + 3_600_000}000000,135.3,1064,${T + 3_600_001}000000,2,1,0,0
AA,12,0,4,71675235876543210987,${T + 5}000000,40,1100,${T + 6}000000,3,1,0,0
`
    const expected = [
      [T, 'A', 135.2, 1, null, '52983525029461'],
      [T + 5, 'AA', 40, 3, null, '71675235876543210987'],
      [T + 3_600_000, 'A', 135.3, 2, null, '52983525029462'],
    ]
    expect(await csv(text)).toEqual(expected)
    expect(await read(file('flat.csv.gz', gzipSync(text)))).toEqual(expected)
  })

  test('JSON of REST and of its WebSocket', async () => {
    const rest = {
      ...{ results: [{ id: '7', participant_timestamp: 1_735_732_800_123_456_789n, price: 135.2, size: 5 }] },
      status: 'OK',
    }
    const text = JSON.stringify(rest, (_, value) => (typeof value === 'bigint' ? `#${value}#` : value))
    expect(await json(text.replaceAll(/"#|#"/g, ''), { symbol: 'A' })).toEqual([
      [T, 'A', 135.2, 5, null, '7'],
    ])
    const message = { ev: 'T', sym: 'A', x: 4, i: '12345', z: 3, p: 135.2, s: 5, c: [0], t: T, q: 3_681_328 }
    expect(await json([message])).toEqual([[T, 'A', 135.2, 5, null, '12345']])
  })
})

describe('Databento', () => {
  const header =
    'ts_recv,ts_event,rtype,publisher_id,instrument_id,action,side,depth,price,size,flags,ts_in_delta,sequence'

  test('CSV with numbers as they are: ns, prices in 1e-9, sides A, B and N', async () => {
    const row = (side: string, price: string, sequence: number) =>
      `${T}999999999,${T}456789,0,1,5482,T,${side},0,${price},5,0,13,${sequence}`
    const text = [header, row('A', '168500000000', 1), row('B', '1', 2), row('N', '9223372036854775807', 3)]
    expect(await csv(text.join('\n'))).toEqual([
      [T, '5482', 168.5, 5, 'sell', '1'],
      [T, '5482', 1e-9, 5, 'buy', '2'],
      'price_invalid',
    ])
  })

  test('CSV for people: ISO times, decimal prices, symbols', async () => {
    const text = `${header},symbol\n${ISO},${ISO},0,1,5482,T,N,0,168.500000000,5,0,13,1,ESH5\n`
    expect(await read(file('es.csv.zst', zstdCompressSync(text)))).toEqual([[T, 'ESH5', 168.5, 5, null, '1']])
  })

  test('JSON, with a header in each record', async () => {
    const record = {
      ts_recv: `${T}999999`,
      hd: { ts_event: `${T}456789`, rtype: 0, publisher_id: 1, instrument_id: 5482 },
      ...{ action: 'T', side: 'A', depth: 0, price: '3720250000000', size: 5, flags: 0, sequence: 9 },
      symbol: 'ESH5',
    }
    expect(await json(record)).toEqual([[T, 'ESH5', 3_720.25, 5, 'sell', '9']])
  })

  test('Parquet, with prices as they are', async () => {
    const path = join(folder, 'es.parquet')
    await readSql(
      `COPY (SELECT ${T}456789::UBIGINT AS ts_event, 1 AS publisher_id, 5482 AS instrument_id, 'B' AS side,
       unnest([168500000000, 9223372036854775807]) AS price, 5 AS size) TO '${path}' (FORMAT parquet)`,
    )
    expect(await read(path)).toEqual([[T, '5482', 168.5, 5, 'buy'], 'price_invalid'])
  })
})

test('Tardis: µs, amount, buy and sell and unknown', async () => {
  const header = 'exchange,symbol,timestamp,local_timestamp,id,side,price,amount\n'
  const row = (side: string) => `deribit,BTC-PERPETUAL,${T}456,${T}999,ETH-1,${side},93576.5,10\n`
  expect(await csv(header + row('buy') + row('sell') + row('unknown'))).toEqual([
    [T, 'BTC-PERPETUAL', 93_576.5, 10, 'buy', 'ETH-1'],
    [T, 'BTC-PERPETUAL', 93_576.5, 10, 'sell', 'ETH-1'],
    [T, 'BTC-PERPETUAL', 93_576.5, 10, null, 'ETH-1'],
  ])
})

test('Hyperliquid: sides A and B, times in ms and as text', async () => {
  const trade = {
    coin: 'BTC',
    side: 'A',
    px: '93576.0',
    sz: '0.5',
    time: T,
    hash: '0xab',
    tid: 1,
    users: ['0x1', '0x2'],
  }
  const expected = [
    [T, 'BTC', 93_576, 0.5, 'sell', '0xab'],
    [T, 'BTC', 93_576, 0.5, 'buy', '0xab'],
  ]
  expect(await json([trade, { ...trade, side: 'B' }])).toEqual(expected)
  expect(await json({ channel: 'trades', data: [trade, { ...trade, side: 'B' }] })).toEqual(expected)
  const lines = ['A', 'B'].map((side) => JSON.stringify({ ...trade, side, time: ISO.replace('Z', '') }))
  expect(await read(file('node.ndjson', lines.join('\n')))).toEqual(expected)
  expect(await csv(`coin,side,px,sz,time\nBTC,A,93576,0.5,${T}\nBTC,B,93576,0.5,${T}\n`)).toEqual(
    expected.map((trade) => trade.slice(0, 5)),
  )
})

test('Bybit: seconds with a fraction, Buy and Sell; and its JSON', async () => {
  const text = `timestamp,symbol,side,size,price,tickDirection,trdMatchID,grossValue\n1735732800.1234,BTCUSDT,Buy,0.5,93576,PlusTick,u-1,4.6e12\n`
  expect(await csv(text)).toEqual([[T, 'BTCUSDT', 93_576, 0.5, 'buy', 'u-1']])
  const message = { T, s: 'BTCUSDT', S: 'Sell', v: '0.5', p: '93576', L: 'PlusTick', i: 'u-2', BT: false }
  expect(await json({ topic: 'publicTrade.BTCUSDT', data: [message] })).toEqual([
    [T, 'BTCUSDT', 93_576, 0.5, 'sell', 'u-2'],
  ])
})
