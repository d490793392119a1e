/** Recorded tables of rates, whatever the order and the names of their columns. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { readHistory, readTable } from '../../../plugins/funding/recorded-settlements.ts'
import { epochSeconds, PAYLOAD_RULES } from '../../../plugins/lib/time/timestamps.ts'
import { readFundingRecordings } from '../../../plugins/funding/recorded-payloads.ts'

const AT = Date.UTC(2026, 1, 4, 21, 19, 43) / 1000

describe('a recorded table', () => {
  it('may have its columns in any order and under any of their names', () => {
    const rows = [{ time: '1770239983000', instrument: 'BTCUSDT', rate: '4.65e-05', markPrice: '' }]
    for (const csv of [
      'timestamp,symbol,funding_rate\n1770239983000,BTCUSDT,4.65e-05',
      '\uFEFFSymbol,"Funding Time",fundingRate\r\nBTCUSDT,"1770239983000",4.65e-05',
      'id,lastFundingRate,coin,ts\n7,4.65e-05,BTCUSDT,1770239983000',
    ])
      expect(readTable(csv), csv).to.deep.equal(rows)
    expect(readTable('a,b\n1,2')).to.deep.equal([])
    expect(readTable('')).to.deep.equal([])
  })

  it('skips incomplete settlement rows', () => {
    const history = readHistory(
      ['symbol,time,rate', `X,${AT},0.1`, 'X,,0.1', `,${AT},0.1`, `X,${AT},`, `X,${AT - 3600},-1e-5`, ''].join('\n'),
    )
    expect(history.get('X')).to.deep.equal([
      { time: AT - 3600, rate: '-0.00001' },
      { time: AT, rate: '0.1' },
    ])
    expect(history.size).to.equal(1)
  })

  it('of Hyperliquid may have rates of several times, and each time is a poll of its own', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-table-'))
    const lines = ['21:19:43', '22:19:43'].flatMap((time, n) => [
      `2026-02-04T${time}+00:00,BTC,0.0000${n + 1},73306.0`,
      `2026-02-04T${time}+00:00,kPEPE,-0.0000${n + 1},`,
    ])
    writeFileSync(
      join(folder, 'hyperliquid_predicted_funding_2026-02-04.csv'),
      ['timestamp,symbol,funding_rate,mark_price', ...lines].join('\n'),
    )
    const { polls } = await readFundingRecordings(folder)
    rmSync(folder, { recursive: true })
    expect(
      polls.map(({ at, parsed }) => [at, parsed.rates.map(({ symbol, rate }) => `${symbol} ${rate}`)]),
    ).to.deep.equal([
      [AT, ['BTC 0.00001', 'PEPE -0.00001']],
      [AT + 3600, ['BTC 0.00002', 'PEPE -0.00002']],
    ])
  })

  it('may have times in seconds, milliseconds or dates, which are UTC without a zone', () => {
    const zone = process.env['TZ']
    process.env['TZ'] = 'America/New_York'
    try {
      for (const time of [
        AT,
        String(AT),
        AT * 1000,
        `${AT * 1000}`,
        '2026-02-04T21:19:43Z',
        '2026-02-04 21:19:43',
        '2026-02-04T21:19:43.000',
        '2026-02-04T16:19:43-05:00',
        '2026-02-04 21:19:43 UTC',
        'Wed, 04 Feb 2026 21:19:43 GMT',
      ])
        expect(epochSeconds(time, PAYLOAD_RULES), String(time)).to.equal(AT)
      expect(epochSeconds('2026-02-04', PAYLOAD_RULES)).to.equal(Date.UTC(2026, 1, 4) / 1000)
      for (const invalid of ['', 'soon', null, 0, -1, {}])
        expect(epochSeconds(invalid, PAYLOAD_RULES), JSON.stringify(invalid)).to.equal(null)
    } finally {
      if (zone === undefined) delete process.env['TZ']
      else process.env['TZ'] = zone
    }
  })
})
