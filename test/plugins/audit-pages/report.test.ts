import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { amountIn } from '../../../plugins/audit-pages/report-money.ts'
import { reportPage } from '../../../plugins/audit-pages/report-page.ts'
import type { AuditReport } from '../../../schemas/types.d.ts'
import { summaryOf } from '../../../plugins/audit/audit.ts'
import { auditOf } from '../audit/audit-fixtures.ts'
import { auditedReports } from './audited-reports.ts'

const ledgers = resolve(import.meta.dirname, '../../../views/assets/ledgers')
const sample = (name: string): string => readFileSync(join(ledgers, name), 'utf8')

describe('the report page', () => {
  const pageOf = async (fields: object) =>
    reportPage((await auditOf(sample('round-trips.csv'), fields)) as unknown as AuditReport)
  const impossible = ({ key }: ReturnType<typeof reportPage>) => key.find(({ label }) => label === 'Impossible fills')

  it('summarises what was judged in one line', async () => {
    const { judged } = await pageOf({ bars: sample('bars.csv') })
    expect(judged).to.match(/^\d+ trades in 1 symbol, \d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d$/)
  })

  it('shows the number of impossible fills without a caution if all fills were checked', async () => {
    const page = await pageOf({ bars: sample('bars.csv') })
    expect(impossible(page)?.figure).to.equal('1')
    expect(page.caution).to.equal(null)
  })

  it('shows "unknown" if no fill was checked', async () => {
    const page = await pageOf({})
    expect(impossible(page)?.figure).to.equal('unknown')
    expect(page).to.include({ caution: null, uncheckedFills: '138 of 138 fills not checked against bars' })
    expect(page.unchecked.map(({ name, meaning }) => [name, meaning])).to.deep.include([
      'outside range',
      'the price lies between the low and the high of its bar',
    ])
  })

  it('aligns the prices of findings and shows units of basis points', async () => {
    const { findings } = await pageOf({ bars: sample('bars.csv') })
    const [{ price, low, high, figures } = {}] = findings
    expect([price, low, high].every((text) => /^\d+\.\d\d$/.test(text ?? ''))).to.equal(true)
    expect(figures?.join()).to.match(/excess \d+\.\d bps/)
  })

  it('shows the first findings, errors before warnings, and the total number', async () => {
    const { fills, ...rest } = (await auditOf(sample('round-trips.csv'), {})) as unknown as AuditReport
    const findings = Array.from({ length: 1000 }, (_, row) => ({
      row,
      code: 'off_tick',
      severity: row < 990 ? 'warning' : 'error',
    }))
    const page = reportPage({ ...rest, fills: { ...fills, findings: findings as unknown as typeof fills.findings } })
    expect(page.found).to.equal(1000)
    expect(page.findings.map(({ row }) => row).slice(0, 11)).to.deep.equal(
      [...Array(10).keys()].map((n) => 990 + n).concat(0),
    )
    expect(page.findings).to.have.lengthOf.below(60)
  })

  it('limits the number of warnings', async () => {
    const report = (await auditOf(sample('round-trips.csv'), {})) as unknown as AuditReport
    const { warnings } = reportPage({
      ...report,
      warnings: Array.from({ length: 1000 }, (_, symbol) => `symbol_${symbol}`),
    })
    expect(warnings).to.have.length(13)
    expect(warnings.at(-1)).to.equal('The JSON report has 988 more warnings.')
  })

  it('writes basis points in one format, in its figures and in the summary', async () => {
    const report = (await auditOf(sample('round-trips.csv'), { preset: 'zero' })) as unknown as AuditReport
    const figures = { ...report.performance, net_expectancy_bps: 2549.33, gross_expectancy_bps: -2549.33 }
    const page = reportPage({ ...report, performance: figures })
    expect(page.key[0]?.figure).to.equal('2,549.3 bps')
    expect(page.performance.map(({ figure }) => figure)).to.include('-2,549.3 bps')
    expect(summaryOf({ ...report, verdict: 'unproven', performance: figures } as never)).to.contain(
      ' 2,549.3 bps a trade',
    )
  })

  it('writes no minus before what rounds to zero', async () => {
    const report = (await auditOf(sample('round-trips.csv'), {})) as unknown as AuditReport
    const page = reportPage({ ...report, performance: { ...report.performance, net_expectancy_bps: -0.04 } })
    expect(page.key[0]?.figure).to.equal('0.0 bps')
  })

  it('leaves out the note of a figure that is unknown', async () => {
    const report = (await auditOf(sample('round-trips.csv'), {})) as unknown as AuditReport
    const lo = (sharpe: number | null) =>
      reportPage({ ...report, performance: { ...report.performance, sharpe_lo: sharpe } }).performance.find(
        ({ label }) => label.startsWith('Sharpe ratio'),
      )
    expect(lo(4.39)).to.include({ figure: '4.39', note: 'Lo 2002' })
    expect(lo(null)).to.include({ figure: '–' }).and.not.to.have.property('note')
  })

  it('never shows a probability of 100%', async () => {
    const report = (await auditOf(sample('round-trips.csv'), {})) as unknown as AuditReport
    const { days, ...byTrade } = { ...report, overfitting: { ...report.overfitting, dsr: 0.99999, psr: 0.00001 } }
    const page = reportPage(byTrade)
    expect(page.key.map(({ figure }) => figure)).to.include('> 99.9%')
    if (days === undefined) throw new Error('The report has no days.')
    const daily = reportPage({ ...report, days: { ...days, dsr: 0.99999 } })
    expect(daily.key.map(({ figure }) => figure)).to.include('> 99.9%')
    expect(page.overfitting.map(({ figure }) => figure)).to.include('< 0.1%')
  })
})

describe('the first screen of a report page', () => {
  let reports: Readonly<Record<string, AuditReport>>
  before(async () => {
    reports = await auditedReports()
  })
  const named = (rid: string): AuditReport => {
    const report = reports[rid]
    if (report === undefined) throw new Error(`There is no report "${rid}".`)
    return report
  }
  const pageOf = (rid: string) => reportPage(named(rid))
  const moneyPage = (rid: string, money: Partial<NonNullable<AuditReport['money']>>) => {
    const report = named(rid)
    if (report.money === undefined) throw new Error(`The report "${rid}" has no money.`)
    return reportPage({ ...report, money: { ...report.money, ...money } }).money
  }

  it('says what was read, what was left out by kind, and names the columns that are not used', () => {
    const { reading } = pageOf('stocks')
    expect(reading.file).to.equal('Fills, 873 rows:')
    expect(reading.left).to.equal('Left out: 58 totals, 4 repeated headers, 11 dividends, 20 open positions.')
    expect(reading.columns).to.deep.equal({
      used: '7 of 16 columns used',
      unused: ', not Trades, Header, DataDiscriminator and 6 more.',
    })
    expect(pageOf('few').reading.columns).to.deep.equal({ used: 'All 8 columns used', unused: '.' })
  })

  it('cuts long names of columns and trials', () => {
    const report = named('futures')
    const name = 'x'.repeat(200)
    const columns = [{ name, used_as: null, why: null }]
    const { reading } = reportPage({
      ...report,
      reading: { assumptions: [], skipped: [], instruments: [], columns },
      ledger: { ...report.ledger, judged_trial: name },
    })
    const cut = `${'x'.repeat(31)}…`
    expect(reading.columns?.unused).to.equal(`, not ${cut}.`)
    expect(reading.judgedTrial).to.equal(`The best of 3 trials is judged, ${cut}.`)
    expect(reading.details?.columns.rows[0]?.[0]?.text).to.equal(name)
  })

  it('lists the columns of uploaded bars', () => {
    const report = named('futures')
    const bars = [
      { name: 'Open', used_as: 'open', why: null },
      { name: 'x', used_as: null, why: 'its name is not known' },
    ]
    const { details } = reportPage({ ...report, reading: { ...report.reading!, bars } }).reading
    expect(details?.bars?.count).to.equal('2, 1 not used')
    expect(details?.bars?.columns.rows[1]?.map(({ text }) => text)).to.deep.equal(['x', 'not used'])
    expect(pageOf('futures').reading.details?.bars).to.equal(null)
  })

  it('lists every column with its use, or why it is not used', () => {
    for (const [rid, { reading }] of Object.entries(reports))
      expect(
        pageOf(rid).reading.details?.columns.rows.map(([name, use]) => [name?.text, use?.text, use?.note]),
        rid,
      ).to.deep.equal(
        reading?.columns.map(({ name, used_as: use, why }) => [name, use?.replaceAll('_', ' ') ?? 'not used', why]),
      )
  })

  it('lists the instruments with most trades, and says how many more there are', () => {
    const report = named('lots')
    const { reading } = report
    const [instrument] = reading?.instruments ?? []
    if (reading === undefined || instrument === undefined) throw new Error('The report has no instruments.')
    const details = (count: number) =>
      reportPage({ ...report, reading: { ...reading, instruments: Array(count).fill(instrument) } }).reading.details
    expect(details(30)).to.include({ furtherInstruments: 0 })
    expect(details(100)).to.include({ furtherInstruments: 70 })
    expect(details(100)?.instruments?.rows).to.have.lengthOf(30)
    expect(details(1)?.instruments?.rows[0]?.[2]).to.deep.equal({ text: '100,000', note: 'inferred from profits' })
  })

  it('says every assumption, those that change the money most first, with a link to the field that states it', () => {
    const { assumptions, furtherAssumptions } = pageOf('lots').reading
    expect([...assumptions, ...furtherAssumptions].map(({ href }) => href)).to.deep.equal([
      '/audit-tool#contract_size',
      '/audit-tool#quote_currency',
      '/audit-tool#timezone',
    ])
    expect(assumptions[0]).to.include({ action: 'State the contract size' })
    const [unstatable] = pageOf('crypto').reading.assumptions
    expect(unstatable?.text).to.contain('BNB')
    expect(unstatable).not.to.have.property('href')
  })

  it('says why the verdict, the grounds that decide it first', () => {
    const report = named('stocks')
    const { grounds, furtherGrounds, summary } = reportPage({ ...report, grounds: report.grounds?.toReversed() ?? [] })
    expect(grounds[0]).to.equal('After costs the trades lose 997,704 USD.')
    expect([...grounds, ...furtherGrounds]).to.have.members((report.grounds ?? []).map((ground) => ground.explanation))
    expect(summary).to.equal(null)
  })

  it('shows the summary if there is no ground', () => {
    expect(pageOf('futures')).to.include({ summary: named('futures').summary })
    expect(pageOf('futures').grounds).to.deep.equal([])
  })

  it('says how many fills were not checked, in one line beside grounds', () => {
    expect(pageOf('stocks')).to.include({ caution: null, uncheckedFills: '796 of 796 fills not checked against bars' })
    expect(pageOf('futures')).to.include({ caution: null, uncheckedFills: null })
  })

  it('shows the net profit in money, and says so if the average trade has the other sign', () => {
    expect(pageOf('stocks').money).to.include({
      net: '-997,704 USD',
      isLoss: true,
      signs: 'The average trade gains, the money is lost: large trades lose.',
    })
    expect(moneyPage('crypto', { net: 3 })?.signs).to.equal(
      'The average trade loses, the money is gained: large trades win.',
    )
    expect(moneyPage('crypto', { net: null, net_by_notional_bps: 1.2 })?.signs).to.contain('is gained')
    expect(pageOf('futures').money?.signs).to.equal(null)
    expect(moneyPage('futures', { net: null, net_by_notional_bps: null })?.signs).to.equal(null)
  })

  it('says why there is no total, and that a currency is unknown', () => {
    expect(pageOf('few').money).to.include({ net: null, missing: named('few').money?.total_missing })
    expect(pageOf('lots').money).to.include({ net: '866.14', currencyUnknown: true, missing: null })
  })

  it('shows open positions, remainders, fees not counted, and the drawdown, but only if there are any', () => {
    const lines = (rid: string) => pageOf(rid).money?.key.map(({ label, figure, note }) => [label, figure, note])
    expect(lines('crypto')).to.deep.equal([
      ['By trade', '-18.7 bps', 'equal weights'],
      ['By notional', '-22.5 bps', 'by size'],
      ['Open positions', '-33.79 USDT', 'at last prices'],
      ['Remainders', '9.89 USDT', undefined],
      ['Fees not counted', '3.2004 BNB', undefined],
      ['Largest drawdown', '-2,104.22 USDT', '19.6% of capital'],
    ])
    expect(lines('few')?.map(([label]) => label)).to.deep.equal(['By trade', 'By notional'])
    const open = moneyPage('crypto', { unrealised: null })?.key.find(({ label }) => label === 'Open positions')
    expect(open, 'without a total').to.deep.equal({ label: 'Open positions', figure: '2', note: 'no total' })
    const unpriced = moneyPage('crypto', { open_positions: [], unrealised: 0 })?.key
    expect(unpriced, 'without a price').to.deep.include({ label: 'Open positions', figure: '2', note: 'not valued' })
  })

  it('names the costs between gross and net, which are those of remainders too if there are any', () => {
    const costs = (rid: string) => pageOf(rid).money?.figures.find(({ label }) => label.startsWith('Costs'))
    expect(costs('futures')).to.deep.equal({ label: 'Costs of the preset', figure: '6,751.68 USD' })
    expect(costs('crypto')?.label).to.equal('Costs of the preset and remainders')
  })

  it('compares the stated profit with the computed one', () => {
    const note = (money: object) =>
      moneyPage('stocks', money)?.figures.find(({ label }) => label.includes('states'))?.note
    expect(note({})).to.equal('after fees, the same as ours')
    expect(note({ stated_basis: 'gross', stated_difference: -12.5 })).to.equal('before fees, 12.50 USD below ours')
    expect(note({ stated_basis: null, stated_difference: null })).to.equal('neither before nor after fees')
  })

  it('shows the statistics of days with their method, and the Sharpe ratio of days at the top', () => {
    const { daily, key } = pageOf('crypto')
    expect(daily?.why).to.equal('Some positions have no price on some days.')
    expect(daily?.figures.find(({ label }) => label === 't statistic')).to.deep.equal({
      label: 't statistic',
      figure: '-0.61',
      note: 'p 0.544',
    })
    expect(key.map(({ figure }) => figure)).to.include.members(['-0.72', '31.0%'])
    expect(pageOf('stocks').daily?.method).to.contain('blocks of 14 days')
    expect(pageOf('few').daily?.figures).to.deep.equal([])
  })

  it('shows the tests of families of trials, and every comparison with a benchmark', () => {
    const labels = (rid: string) => {
      const { daily, overfitting } = pageOf(rid)
      return [...overfitting, ...(daily?.figures ?? [])].map(
        ({ label, figure, note }) => `${label}: ${figure}, ${note}`,
      )
    }
    expect(labels('futures')).to.include.members([
      'Superior predictive ability: p 0.018, Hansen',
      'Reality check: p < 0.001, White',
      'Alpha of a day, beside holding the symbols: 3.4 bps, t 2.24',
      'Alpha of a day, beside SPY: 3.1 bps, t 2.01',
    ])
    expect(labels('lots').join()).to.not.match(/Superior|Reality|SPY/)
    expect(labels('stocks').join()).to.not.contain('Alpha')
  })

  it('of a report of an earlier version has its trades, summary and reasons, and no empty parts', () => {
    const page = pageOf('earlier')
    expect(page.reading.file).to.equal('Round trips, 69 rows:')
    expect(page.reading).to.include({ left: null, columns: null, details: undefined })
    expect(page).to.include({ money: null, daily: null, summary: named('earlier').summary })
    expect(page.grounds).to.have.lengthOf(named('earlier').reasons.length)
    const unchecked = { ...named('earlier').fills, checked: 0 }
    expect(reportPage({ ...named('earlier'), fills: unchecked }).caution).to.contain('it is unknown')
  })

  it('writes amounts of money with the decimals that matter', () => {
    const written = [-997_704.4, 12_345.6, 1342.345, 1, -0.7, 0.012345, 0, 2.27e-14, -2.27e-14, null].map(
      amountIn('USD'),
    )
    expect(written).to.deep.equal([
      '-997,704 USD',
      '12,346 USD',
      '1,342.35 USD',
      '1.00 USD',
      '-0.70 USD',
      '0.0123 USD',
      '0.00 USD',
      '0.00 USD',
      '0.00 USD',
      '–',
    ])
    expect(amountIn(null)(5)).to.equal('5.00')
  })
})
