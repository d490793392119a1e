import { expect } from 'chai'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import type { DocumentParts } from '../../../gateway/documents/document.ts'
import { createHealth } from '../../../gateway/documents/health-and-stats.ts'
import type { ProductStatus } from '../../../gateway/products/edition.ts'
import type { FreshnessState } from '../../../gateway/products/freshness.ts'
import type { Catalog, JsonReply } from '../../../gateway/plugin/plugin.ts'
import type { Issue } from '../../../gateway/validation/issue.ts'

const OK: readonly ProductStatus[] = [{ product: 'gold', status: 'ok' }]
const ISSUE: Issue = { file: 'gold.json', pointer: '/price', rule: 'schema', message: 'must be a string' }

const STALE: FreshnessState = {
  operation: 'getGold',
  route: 'GET /v1/gold',
  status: 'stale',
  missing: ['sources'],
  required: { newestSeconds: 60, sources: 2 },
  found: { newest: new Date('2026-06-01T11:59:30Z'), sources: 1, coverage: 1 },
  reason: '1 of at least 2 sources deliver data. Nothing was charged.',
}

describe('the status of the service', () => {
  let time = Date.UTC(2026, 5, 1, 12)
  let products = OK
  let freshness: readonly FreshnessState[] = []
  let issues: readonly Issue[] = []
  let settler: { ready: boolean; reason?: string } = { ready: true }
  let journal: { ready: boolean; reason?: string } = { ready: true }
  const warnings: { code: string; message: string }[] = []
  const catalog = { version: 'v1', service: { name: 'shop', version: '1.0.0' } } as unknown as Catalog
  let edition: object = { catalog, disabled: [], status: () => products, freshness: () => freshness }
  const parts = {
    network: NETWORKS['base-sepolia'],
    payTo: '0x00000000000000000000000000000000000000A1',
    baseUrl: 'http://shop.example',
    now: () => new Date(time),
    editions: () => edition,
    issues: () => issues,
    started: new Date(time - 90_500),
    dataMode: 'sample',
    warnings: () => warnings,
    journalHealth: () => journal,
    settlerHealth: () => ({ ...settler }),
  } as unknown as DocumentParts
  const health = createHealth(parts)

  function read(): Record<string, unknown> {
    const text = (health(catalog) as JsonReply).json.toString()
    const value = JSON.parse(text) as Record<string, unknown>
    // It is written in two parts, but as one value would be.
    expect(text).to.equal(JSON.stringify(value))
    return value
  }

  it('shows each change in the next call, and the time of every call', () => {
    const first = read()
    expect(first).to.include({ status: 'ok', uptime_seconds: 90, time: '2026-06-01T12:00:00.000Z' })
    expect(Object.keys(first).slice(-3)).to.deep.equal(['started', 'uptime_seconds', 'time'])
    time += 1_501
    expect(read()).to.deep.equal({ ...first, uptime_seconds: 92, time: '2026-06-01T12:00:01.501Z' })

    settler = { ready: false, reason: 'no gas' }
    expect(read()).to.deep.include({ status: 'degraded', settler: { ready: false, reason: 'no gas' } })
    settler = { ready: true }
    expect(read()).to.include({ status: 'ok' })

    journal = { ready: false, reason: '/srv/data/journal.sqlite: the disk is full' }
    const unwritable = read()
    expect(unwritable).to.include({ status: 'degraded' })
    expect(unwritable['journal']).to.deep.equal({
      ready: false,
      reason: 'Payments cannot be recorded, so none is taken. The log says why.',
    })
    journal = { ready: true }
    expect(read()).to.deep.include({ status: 'ok', journal: { ready: true } })

    products = [{ product: 'gold', status: 'suspended', reason: 'getGold failed five times in a row' }]
    expect(read()).to.deep.include({ status: 'degraded', products })
    products = OK
    issues = [ISSUE]
    expect(read()).to.deep.include({ status: 'degraded', mistakes: [ISSUE] })
    issues = []
    expect(read()).to.include({ status: 'ok', catalog_version: 'v1' })
    warnings.push({ code: 'proxy_not_named', message: 'Name it.' })
    expect(read()).to.deep.include({ status: 'ok', warnings })

    freshness = [STALE]
    expect(read()).to.deep.include({ status: 'degraded' })
    expect(read()['freshness']).to.deep.equal([
      {
        operation: 'getGold',
        route: 'GET /v1/gold',
        status: 'stale',
        missing: ['sources'],
        required: { newest_seconds: 60, sources: 2 },
        found: { newest: '2026-06-01T11:59:30.000Z', sources: 1, coverage: 1 },
        reason: '1 of at least 2 sources deliver data. Nothing was charged.',
      },
    ])
    freshness = [{ ...STALE, request: 'GET /v1/gold?day=1' }]
    expect(read()['freshness']).to.have.nested.property('[0].request', 'GET /v1/gold?day=1')
    freshness = [{ ...STALE, status: 'unknown', missing: [], found: null, reason: null }]
    expect(read()).to.deep.include({ status: 'ok' })
    freshness = []

    edition = {
      catalog: { ...catalog, version: 'v2' },
      disabled: [],
      status: () => products,
      freshness: () => freshness,
    }
    expect(read()).to.include({ status: 'ok', catalog_version: 'v2' })
  })
})
