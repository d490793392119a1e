import { expect } from 'chai'
import type { DocumentParts } from '../../../gateway/documents/document.ts'
import { createStats } from '../../../gateway/documents/health-and-stats.ts'
import type { Catalog, Facts, JsonReply } from '../../../gateway/plugin/plugin.ts'

describe('the statistics of the products', () => {
  const catalog = { version: 'v1' } as unknown as Catalog
  let time: number
  let reads: number
  let edition: object
  let fact: () => Promise<Facts>

  function editionOf(version: string): object {
    const facts = async (): Promise<Record<string, Facts>> => {
      reads += 1
      return { gold: await fact(), silver: {} }
    }
    return { catalog: { version }, facts }
  }

  beforeEach(() => {
    time = Date.UTC(2026, 5, 1, 12)
    reads = 0
    fact = async () => ({ rows: reads })
    edition = editionOf('v1')
  })

  const parts = { dataMode: 'sample', now: () => new Date(time), editions: () => edition } as unknown as DocumentParts

  function open(leading: string | null): () => Promise<Record<string, unknown>> {
    const stats = createStats(parts, leading)
    return async () => JSON.parse(((await stats(catalog)) as JsonReply).json.toString()) as Record<string, unknown>
  }

  it('repeat those of the leading product, omit products without any, and say what data they rest on', async () => {
    const rest = { data_mode: 'sample', catalog_version: 'v1' }
    const gold = (rows: number) => ({ gold: { rows, data_mode: 'sample' } })
    expect(await open('gold')()).to.deep.equal({ rows: 1, ...rest, products: gold(1) })
    expect(await open(null)()).to.deep.equal({ ...rest, products: gold(2) })
  })

  it('are read once a second, however many calls come', async () => {
    const read = open('gold')
    const all = await Promise.all([read(), read(), read()])
    time += 999
    all.push(await read())
    expect(all.map(({ rows }) => rows)).to.deep.equal([1, 1, 1, 1])
    time += 1
    expect(await read()).to.include({ rows: 2 })
  })

  it('are read again after the clock was set back', async () => {
    const read = open('gold')
    await read()
    time -= 60_000
    expect(await read()).to.include({ rows: 2 })
  })

  it('are read again in a new edition', async () => {
    const read = open('gold')
    await read()
    edition = editionOf('v2')
    expect(await read()).to.include({ rows: 2, catalog_version: 'v2' })
  })

  it('stay the newer ones if an earlier reading ends later', async () => {
    const ended: (() => void)[] = []
    fact = () => {
      const rows = reads
      return new Promise((resolve) => ended.push(() => resolve({ rows })))
    }
    const read = open('gold')
    const early = read()
    time += 1_000
    const late = read()
    ended[1]?.()
    expect(await late).to.include({ rows: 2 })
    ended[0]?.()
    expect(await early).to.include({ rows: 1 })
    expect(await read()).to.include({ rows: 2 })
  })
})
