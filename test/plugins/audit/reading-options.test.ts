import { expect } from 'chai'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { InvalidInput } from '../../../gateway/errors.ts'
import { readingOptionsOf, type StatedMembers } from '../../../plugins/audit/reading-options.ts'
import { createTimeReader } from '../../../plugins/lib/tables/time-cells.ts'
import { createZone } from '../../../plugins/lib/time/time-zones.ts'
import { json } from '../../support/agent.ts'
import { openGateway, type TestGateway } from '../../support/gateway.ts'
import { auditOf } from './audit-fixtures.ts'

const refused = (stated: StatedMembers): InvalidInput => {
  try {
    readingOptionsOf(stated)
  } catch (error) {
    if (error instanceof InvalidInput) return error
    throw error
  }
  throw new Error('it was accepted')
}

describe('what the caller says of a file', () => {
  it('may be objects or text', () => {
    const columns = { Pos: 'side', 'Ex. date': 'exit_time' }
    for (const written of [
      columns,
      'Pos=side, Ex. date=exit_time',
      'Pos=side\nEx. date = exit_time;',
      JSON.stringify(columns),
    ])
      expect(Object.fromEntries(readingOptionsOf({ columns: written }).columns)).to.deep.equal(columns)
    expect([...readingOptionsOf({ columns: 'a=b=qty' }).columns]).to.deep.equal([['a=b', 'qty']])
    for (const size of [{ EURUSD: 100_000, MNQ: 2 }, 'EURUSD=100000, MNQ=2', '{"EURUSD": 1e5, "MNQ": 2}'])
      expect(readingOptionsOf({ contract_size: size }).contractSize).to.deep.equal(
        new Map([
          ['EURUSD', 1e5],
          ['MNQ', 2],
        ]),
      )
    for (const size of [2, '2', ' 2.0 ']) expect(readingOptionsOf({ contract_size: size }).contractSize).to.equal(2)
  })

  it('is nothing by default', () => {
    const { columns, ...rest } = readingOptionsOf({})
    expect(columns.size).to.equal(0)
    expect(new Set(Object.values(rest))).to.deep.equal(new Set([null]))
    expect(readingOptionsOf({ fee_currency: 'bnb', quote_currency: 'Usdt', capital: 5, benchmark: 'SPY' })).to.include({
      feeCurrency: 'BNB',
      quoteCurrency: 'USDT',
      capital: 5,
      benchmark: 'SPY',
    })
  })

  it('is refused if it cannot be read, and the error names the member', () => {
    const wrong: Readonly<Record<string, StatedMembers>> = {
      timezone: { timezone: 'Europe/Atlantis' },
      columns: { columns: 'Pos' },
      contract_size: { contract_size: 'EURUSD=many' },
    }
    for (const [member, stated] of Object.entries(wrong)) {
      const [item] = refused(stated).detail
      expect(item?.loc).to.deep.equal(['body', member])
      expect(item?.type).to.equal(`invalid_${member}`)
    }
    for (const size of ['0', '-2', 'x', '1e12', 'A=', '{"A":'])
      expect(() => readingOptionsOf({ contract_size: size }), size).to.throw()
    expect(refused({ timezone: 'Mars' }).detail[0]?.msg).to.contain('Europe/Berlin')
  })
})

describe('a ledger whose columns the caller names', () => {
  const rows = ['Papier,Was,Wann,Wieviel,Zu', 'X,long,2024-01-02,10,100', 'X,short,2024-01-03,10,101']
  const audited = (columns: string) => auditOf(rows, { preset: 'zero', stated: readingOptionsOf({ columns }) })
  const NAMED = 'Papier=symbol, Was=side, Wann=time, Wieviel=qty, Zu=price'
  const refusalOf = async (columns: string) => {
    const error: unknown = await audited(columns).catch((caught: unknown) => caught)
    expect(error).to.be.instanceOf(InvalidInput)
    return (error as InvalidInput).detail[0]!
  }

  it('is read as named, whatever case the names have', async () => {
    for (const columns of [NAMED, NAMED.toLowerCase()]) {
      const report = await audited(columns)
      expect(report.performance.gross_expectancy_bps).to.be.closeTo(100, 1e-9)
      expect(report.reading.columns.map(({ used_as: use }) => use)).to.deep.equal([
        'symbol',
        'side',
        'time',
        'qty',
        'price',
      ])
      expect(new Set(report.reading.columns.map(({ why }) => why))).to.deep.equal(new Set(['the request says so']))
    }
  })

  it('is read without the columns that are to be ignored', async () => {
    const trips = [
      'symbol,side,qty,entry_time,entry_price,exit_time,exit_price,fee',
      'X,long,10,2024-01-02,100,2024-01-03,101,5',
    ]
    const stated = readingOptionsOf({ columns: { fee: 'ignore' } })
    const report = await auditOf(trips, { preset: 'zero', stated })
    expect(report.performance.net_expectancy_bps).to.be.closeTo(100, 1e-9)
    expect(report.reading.columns.at(-1)).to.deep.equal({ name: 'fee', used_as: null, why: 'the request says so' })
  })

  it('is read with the names before what the audit would recognise', async () => {
    const trips = [
      'symbol,side,qty,entry_time,entry_price,exit_time,exit_price,fee,commission,charge',
      'X,long,10,2024-01-02,100,2024-01-03,101,5,7,1',
    ]
    const stated = readingOptionsOf({ columns: 'fee=fees, charge=fees' })
    const report = await auditOf(trips, { preset: 'zero', stated })
    expect(report.performance.net_expectancy_bps).to.be.closeTo(40, 1e-9)
    expect(report.reading.columns[8]).to.deep.equal({
      name: 'commission',
      used_as: null,
      why: 'columns says what the fees are',
    })
  })

  it('is refused for a column or a use that does not exist, naming those that do', async () => {
    const column = await refusalOf('Papyrus=symbol')
    expect(column.loc).to.deep.equal(['body', 'columns', 'Papyrus'])
    expect(column.msg).to.contain('"Papier", "Was", "Wann"')
    const use = await refusalOf('Was=richtung')
    expect(use.loc).to.deep.equal(['body', 'columns', 'Was'])
    expect(use.msg).to.contain('entry_time').and.to.contain('ignore')
    expect((await refusalOf('Wann=time, Zu=time')).msg)
      .to.contain('"Wann"')
      .and.to.contain('"Zu"')
  })
})

describe('a ledger whose time zone the caller names', () => {
  const trip = (entry: string, exit: string) => [
    'symbol,side,qty,entry_time,entry_price,exit_time,exit_price',
    `X,long,1,${entry},100,${exit},101`,
  ]
  const stated = readingOptionsOf({ timezone: 'America/New_York' })

  it('has its times read as the clocks of that zone', async () => {
    const report = await auditOf(trip('2024-01-02 09:30', '2024-07-02 09:30'), { stated })
    expect(report.ledger).to.include({
      first: '2024-01-02T14:30:00.000Z',
      last: '2024-07-02T13:30:00.000Z',
      zoned: true,
    })
    expect(report.warnings).not.to.include('times_without_zone_read_as_utc')
    expect(report.reading.assumptions).to.deep.equal([])
  })

  it('keeps days, and times that name their zone', async () => {
    const days = await auditOf(trip('2024-01-02', '2024-07-02 00:00:00'), { stated })
    expect(days.ledger).to.include({ first: '2024-01-02T00:00:00.000Z', last: '2024-07-02T00:00:00.000Z' })
    const zoned = await auditOf(trip('2024-01-02T09:30:00Z', '2024-07-02T09:30:00Z'), { stated })
    expect(zoned.ledger).to.include({ first: '2024-01-02T09:30:00.000Z', last: '2024-07-02T09:30:00.000Z' })
  })

  it('reads an exit in the hour that comes twice as the one after the entry, and says so', async () => {
    const report = await auditOf(trip('2024-11-03 01:50', '2024-11-03 01:10'), { stated })
    expect(report.ledger).to.include({ first: '2024-11-03T05:50:00.000Z', last: '2024-11-03T06:10:00.000Z', trades: 1 })
    expect(report.reading.assumptions[0]?.text).to.contain('2 times').and.to.contain('America/New_York')
  })

  it('reads times in the hour that is skipped an hour later, and says so', () => {
    const times = createTimeReader(null, { zone: createZone('Europe/Berlin') })
    const place = { file: 'file', row: 0, column: 'time' } as const
    const read = (text: string) => new Date(times.read(text, place)!).toISOString()
    expect(read('2024-03-31 01:59:59')).to.equal('2024-03-31T00:59:59.000Z')
    expect(read('2024-03-31 02:30')).to.equal('2024-03-31T01:30:00.000Z')
    expect(read('2024-03-31 03:00')).to.equal('2024-03-31T01:00:00.000Z')
    expect(times.odd).to.deep.equal({ repeated: 0, skipped: 1 })
    expect(read('2024-10-27 01:59')).to.equal('2024-10-26T23:59:00.000Z')
    expect(read('2024-10-27 02:00')).to.equal('2024-10-27T00:00:00.000Z')
    expect(read('2024-10-27 03:00')).to.equal('2024-10-27T02:00:00.000Z')
    expect(times.odd).to.deep.equal({ repeated: 1, skipped: 1 })
  })
})

describe('POST /audit', () => {
  const folder = mkdtempSync(join(tmpdir(), 'audit-options-'))
  const root = resolve(import.meta.dirname, '../../..')
  let gateway: TestGateway
  before(async () => {
    for (const name of ['service', 'documents', 'audit', 'audit-pages', 'market', 'qc'])
      cpSync(join(root, 'catalog', `${name}.json`), join(folder, `${name}.json`))
    gateway = await openGateway({ CATALOG_DIR: folder, PLUGIN_DIRS: join(root, 'plugins') })
  })
  after(async () => {
    await gateway.close()
    rmSync(folder, { recursive: true })
  })

  const file = 'Papier,Was,Wann,Wieviel,Zu\nX,long,2024-01-02 10:00,10,100\nX,short,2024-01-03 10:00,10,101\n'
  const columns = { Papier: 'symbol', Was: 'side', Wann: 'time', Wieviel: 'qty', Zu: 'price' }
  const post = (body: string | FormData) =>
    fetch(`${gateway.url}/audit`, {
      method: 'POST',
      body,
      headers: typeof body === 'string' ? { 'content-type': 'application/json' } : {},
    })
  const asJson = (stated: object) => post(JSON.stringify({ file, columns, ...stated }))
  const asForm = (stated: Readonly<Record<string, string>>) => {
    const parts = new FormData()
    parts.set('file', new Blob([file]), 'ledger.csv')
    for (const [name, value] of Object.entries(stated)) parts.set(name, value)
    return post(parts)
  }

  it('takes what the caller says as JSON and as fields of a form', async () => {
    const text = Object.entries(columns)
      .map((pair) => pair.join('='))
      .join(', ')
    const answers = [
      await asJson({ contract_size: { X: 2 }, capital: 1000, timezone: 'Europe/Berlin', benchmark: 'SPY' }),
      await asForm({
        columns: text,
        contract_size: 'X=2',
        capital: '1000',
        timezone: 'Europe/Berlin',
        fee_currency: '',
      }),
      await asForm({ columns: JSON.stringify(columns), contract_size: '2', quote_currency: 'EUR' }),
    ]
    for (const answer of answers) expect(answer.status, await answer.clone().text()).to.equal(200)
  })

  it('answers 422 and names the member if it cannot', async () => {
    const cases: Readonly<Record<string, object>> = {
      columns: { columns: { Was: 7 } },
      contract_size: { contract_size: -1 },
      fee_currency: { fee_currency: '$' },
      quote_currency: { quote_currency: 'a b' },
      capital: { capital: 0 },
      timezone: { timezone: 'Europe/Atlantis' },
      benchmark: { benchmark: '=1' },
    }
    for (const [member, stated] of Object.entries(cases)) {
      const answer = await asJson(stated)
      expect(answer.status, member).to.equal(422)
      expect(((await json(answer))['detail'] as { loc: string[] }[])[0]?.loc.slice(0, 2)).to.deep.equal([
        'body',
        member,
      ])
    }
    const unknown = await asForm({ columns: 'Nix=symbol' })
    expect(unknown.status).to.equal(422)
    expect(await unknown.text()).to.contain('Papier')
  })
})
