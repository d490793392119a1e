import { expect } from 'chai'
import { parseReplayShift } from '../../../gateway/config/config.ts'
import { createColumns } from '../../../plugins/market/bars.ts'
import { fillQuiet, pairName, parseRecording, recordingFormat } from '../../../plugins/market/bar-recordings.ts'
import { joinRecordings, barShift, type Recording } from '../../../plugins/market/bar-replay.ts'

describe('the reader of recorded bars', () => {
  it('recognises recordings by their file names', () => {
    const formatOf = (file: string) => {
      const name = recordingFormat(file)
      return name && `${name.symbol} ${name.venue} ${name.interval_seconds} ${name.clock}`
    }
    expect(formatOf('bitfinex_btcusd_1m_2017.csv.gz')).to.equal('BTC-USD bitfinex 60 UTC')
    expect(formatOf('binance_ethusdt_1h_2022-2024.csv.gz')).to.equal('ETH-USD binance 3600 UTC')
    expect(formatOf('coinbase_BTC-USD_5m_2026-01-26_2026-04-22.csv')).to.equal('BTC-USD coinbase 300 UTC')
    expect(formatOf('coinbase_ltcusd_20180405_minute_trades_quotes.csv.gz')).to.equal('LTC-USD coinbase 60 UTC')
    expect(formatOf('us_spy_20131004_minute_trades_quotes.csv.gz')).to.equal('SPY us 60 New York')
    expect(formatOf('daily_raw_aapl_lean.csv.gz')).to.equal('AAPL lean 86400 UTC')
    expect(formatOf('BTCUSDT-1m-2026-02.csv')).to.equal('BTC-USD binance 60 UTC')
    expect(formatOf('sp500_daily_adjusted_2021-2026_sample.csv.gz')).to.equal('null us 86400 UTC')
    for (const other of ['qc_dev_btc_1m_corrupted.csv.gz', 'splits.json', 'README.md', 'edge_authors_ohlc.csv'])
      expect(formatOf(other), other).to.equal(null)
  })

  it('names pairs the usual way, with Tether as the dollar', () => {
    expect(['btcusdt', 'ETHUSD', 'BTC-USD', 'ADABTC', 'SOLUSDC'].map(pairName)).to.deep.equal([
      'BTC-USD',
      'ETH-USD',
      'BTC-USD',
      'ADA-BTC',
      'SOL-USD',
    ])
  })

  const utc = { venue: 'x', symbol: 'BTC-USD', interval_seconds: 60, clock: 'UTC' } as const
  const only = (text: string, name: Parameters<typeof parseRecording>[1] = utc) =>
    [...parseRecording(text, name).values()][0]!

  it('reads times in seconds, milliseconds, microseconds or ISO 8601', () => {
    const row = ',1,3,1,2,5\n'
    const second = 1_735_689_600
    for (const time of [
      '1735689600',
      '1735689600000',
      '1735689600000000',
      '2025-01-01 00:00:00',
      '2025-01-01T00:00:00.000Z',
      '2025-01-01',
    ])
      expect([...only(`timestamp,open,high,low,close,volume\n${time}${row}`).time], time).to.deep.equal([second])
    expect([...only(`1735689600000000${row}`).time]).to.deep.equal([second])
  })

  it('converts New York times to UTC, in summer and in winter', () => {
    const wallClock = (iso: string): number => Date.parse(`${iso}Z`)
    const text = `timestamp,open,high,low,close,volume\n${wallClock('2013-10-04T09:30')},1,1,1,1,1\n${wallClock('2013-12-04T09:30')},1,1,1,1,1\n`
    const { time } = only(text, { ...utc, clock: 'New York' })
    expect([...time].map((at) => new Date(at * 1000).toISOString().slice(11, 16))).to.deep.equal(['13:30', '14:30'])
  })

  it('drops impossible rows and repeated times, and sorts by time', () => {
    const text =
      'timestamp,open,high,low,close,volume\n120,2,2,2,2,1\n60,1,1,1,1,1\n120,9,9,9,9,1\n180,0,1,1,1,1\nx,1,1,1,1,1\n'
    const { time, close } = only(text)
    expect([[...time], [...close]]).to.deep.equal([
      [60, 120],
      [1, 2],
    ])
  })

  it('checks rows as those of venues are checked, and says why it drops one', () => {
    const rows = [
      '60,2,3,1,2,1',
      '120,2,3,2.5,2.7,1',
      '180,2,1,1,2,1',
      '240,2,1,3,2,1',
      '300,2,3,1,,1',
      '360,2,3,1,2,-1',
      '420,2,Infinity,1,2,1',
      '480,-2,3,-2,2,1',
      'x,2,3,1,2,1',
      '540,2,3,1,2,',
      '540,2,3,1,2,5',
    ]
    const dropped: string[] = []
    const text = `timestamp,open,high,low,close,volume\n${rows.join('\n')}\n`
    const { time, volume } = parseRecording(text, utc, (reason) => dropped.push(reason)).get('BTC-USD')!
    expect([[...time], [...volume]]).to.deep.equal([
      [60, 540],
      [1, 0],
    ])
    expect(dropped).to.deep.equal([
      'outside_high_low',
      'outside_high_low',
      'high_below_low',
      'not_a_number',
      'negative_volume',
      'not_a_number',
      'not_positive',
      'not_a_number',
      'repeated_time',
    ])
  })

  it('splits a file of many symbols', () => {
    const parts = parseRecording(
      'symbol,date,open,high,low,close,volume\nA,2021-02-26,1,1,1,1,1\nB,2021-02-26,2,2,2,2,2\n',
      { ...utc, symbol: null },
    )
    expect([...parts.keys()]).to.deep.equal(['A', 'B'])
  })

  it('fills quiet minutes, but not a long silence', () => {
    const bars = createColumns()
    for (const time of [0, 180, 180 + 4 * 3600]) bars.add(time, 1, 2, 1, 2, 7, 0)
    const filled = fillQuiet(bars.end(), 60, 3600)
    expect([...filled.time]).to.deep.equal([0, 60, 120, 180, 180 + 4 * 3600])
    expect([...filled.state]).to.deep.equal([0, 1, 1, 0, 0])
    expect([filled.open[1], filled.high[1], filled.volume[1]]).to.deep.equal([2, 2, 0])
  })
})

describe('the replay of recorded bars', () => {
  const WEEK = 7 * 86_400
  function recording(first: number, minutes: number, more: Partial<Recording> = {}): Recording {
    const bars = createColumns(minutes)
    for (let i = 0; i < minutes; i += 1) bars.add(first + i * 60, 1, 1, 1, 1, 1, 0)
    return { venue: 'x', symbol: 'BTC-USD', interval_seconds: 60, clock: 'UTC', bars: bars.end(), ...more }
  }

  it('joins recordings of one venue that follow each other', () => {
    const joined = joinRecordings([recording(6000, 100), recording(0, 100), recording(0, 5, { venue: 'y' })])
    expect(joined.map(({ bars }) => bars.count)).to.have.members([200, 5])
  })

  it('shifts a recording by whole weeks, so that four fifths lie in the past at the first start', () => {
    const long = recording(1_000_000, 100 * 1440)
    const now = 1_800_000_000
    const shift = barShift(long, parseReplayShift('auto'), now)
    expect(shift % WEEK).to.equal(0)
    const past = (now - (1_000_000 + shift)) / (100 * 86_400)
    expect(past).to.be.within(0.8 - 0.036, 0.8 + 0.036)
  })

  it('lets a short recording end just before now, keeps the dates of daily bars, and obeys a configured shift', () => {
    const now = 1_800_000_000
    const short = recording(1_000_000, 1440)
    const end = 1_000_000 + 1440 * 60 + barShift(short, parseReplayShift('auto'), now)
    expect(now - end).to.be.within(0, WEEK)
    expect(barShift(recording(0, 30, { interval_seconds: 86_400 }), parseReplayShift('auto'), now)).to.equal(0)
    expect(barShift(short, parseReplayShift('none'), now)).to.equal(0)
    expect(barShift(short, parseReplayShift('frozen:2017-01-01T00:00:00Z'), now)).to.equal(0)
    expect(barShift(short, parseReplayShift('3600'), now)).to.equal(3600)
  })
})
