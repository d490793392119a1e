import { expect } from 'chai'
import fc from 'fast-check'
import type { JobCount } from '../../gateway/products/jobs.ts'
import { ServiceError } from '../../gateway/errors.ts'
import type { Facts, Operation } from 'tollgate/plugin'
import { callOperation, openTestCatalog, testContract } from 'tollgate/testing'
import { until } from '../support/until.ts'
import { DRAWN, overlongNumbers } from './rounded-numbers.ts'

/** A Monday during US trading hours, after the newest snapshot that a plugin brings along. Fixed, so that no hour matters. */
const now = new Date('2026-11-23T15:30:00Z')
const { edition, close } = await openTestCatalog({ now })
/** `npm test -- --product gold` tests only that product. */
const product = process.env['PRODUCT']

describe(product === undefined ? 'every product of the catalog' : `the product ${product}`, function () {
  this.timeout(300_000)
  before(async () => {
    edition.start()
    await until(async () => !isBusy(await edition.facts()) && (await isGraded()), 100)
  })
  after(close)

  testContract(edition, { now, ...(product === undefined ? {} : { product }) })

  for (const operation of [...edition.catalog.operations.values()].filter(sellsNumbers))
    it(`gives no number of ${operation.id} more digits than it means`, async () => {
      const drawn = DRAWN[operation.id]
      await assertShort(operation, operation.example?.request ?? {})
      if (drawn)
        await fc.assert(
          fc.asyncProperty(drawn, (request) => assertShort(operation, request)),
          { numRuns: 25 },
        )
    })
})

/** Whether programs read the answers of an operation. Pages, and plans, which cost money, have tests of their own. */
function sellsNumbers({ id, product: own, internal, view, plan, listed }: Operation): boolean {
  return !internal && view === null && !plan && listed && id !== 'reissueTokens' && (product ?? own) === own
}

/** A request that is refused has no numbers. */
async function assertShort({ id, maxFreshnessSeconds }: Operation, request: object): Promise<void> {
  const asOf = new Date(now.getTime() - maxFreshnessSeconds * 1000)
  const answer = await callOperation(edition, id, { ...request, asOf }).catch((error: unknown) => {
    if (error instanceof ServiceError) return null
    throw error
  })
  const body: unknown = Buffer.isBuffer(answer)
    ? readJson(answer.toString())
    : JSON.parse(JSON.stringify(answer ?? null))
  expect(overlongNumbers(body), JSON.stringify(request)).to.deep.equal([])
}

/** A document may be text. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Returns true until every job has ended its first run, which generates the sample data. */
function isBusy(facts: Readonly<Record<string, Facts>>): boolean {
  const tested = Object.entries(facts).filter(([id]) => product === undefined || id === product)
  const jobs = tested.flatMap(([, { jobs }]) => Object.values((jobs ?? {}) as Record<string, JobCount>))
  return jobs.some(({ runs }) => runs === 0)
}

/** Returns true once the record of the regimes is there, which the pages show: every minute of the sample is stored then. */
async function isGraded(): Promise<boolean> {
  if (product !== undefined && product !== 'site') return true
  return 'brier' in ((await callOperation(edition, 'getStats', { asOf: now })) as object)
}
