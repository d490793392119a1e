import { expect } from 'chai'
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import { openLiveGateway, wordProduct } from './live-gateway.ts'

/** A product with one operation, named like its plugin. */
const product = (name: string) => ({
  ...wordProduct(name),
  operations: { [name]: wordProduct(name).operations.getWord },
})
/** A plugin whose `stop` is this code. */
const plugin = (name: string, stop: string): string => `import { definePlugin } from 'tollgate/plugin'
export default definePlugin({ name: '${name}', setup: () => ({
  handlers: { ${name}: () => ({ word: '${name}' }) },
  stop: async () => { ${stop} },
}) })
`

describe('a gateway that is closed while a product fails to stop', () => {
  it('waits for the other products, closes the journal and the databases, and reports the failure', async () => {
    const ended: string[] = []
    const seen = globalThis as { onStopped?: (name: string) => void }
    seen.onStopped = (name) => ended.push(name)
    const live = await openLiveGateway({
      catalog: { 'broken.json': product('broken'), 'slow.json': product('slow') },
      sources: {
        'broken/index.ts': plugin('broken', `throw new Error('it cannot stop')`),
        'slow/index.ts': plugin('slow', `await new Promise((wake) => setTimeout(wake, 50)); onStopped('slow')`),
      },
      overrides: {
        journal: (journal: Journal) => ({
          ...journal,
          async close() {
            await journal.close()
            ended.push('journal')
            throw new Error('neither can the journal')
          },
        }),
      },
    })
    const { gateway } = live
    expect(gateway.current.catalog.products.map(({ id }) => id)).to.include.members(['broken', 'slow'])
    const failure = await live.close().catch((error: Error) => error.message)
    delete seen.onStopped
    expect(failure).to.equal('it cannot stop')
    expect(ended).to.deep.equal(['slow', 'journal'])
    const revoked = await gateway.revocations.revoke('token', 'test').catch((error: Error) => error.message)
    expect(revoked, 'the databases').to.equal('the database is closed')
  })
})
