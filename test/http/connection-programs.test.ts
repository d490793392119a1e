/** Connections that send what nobody should, from the programs that `npm run lab -- connections` draws. */
import { expect } from 'chai'
import fc from 'fast-check'
import { Pace } from '../support/connections/pace.ts'
import { type Program, programs } from '../support/connections/programs.ts'
import { PROXY, send } from '../support/connections/sender.ts'
import { until } from '../support/until.ts'
import { openTransportGateway, PRICED, route, type TransportGateway } from './transport-gateway.ts'

/** More than a program takes. */
const MOST_MS = 20_000
const MEDIA = ['application/json', 'text/csv', 'multipart/form-data', 'application/x-www-form-urlencoded']
const SIZES = { mostBytes: 40_000, mostMs: 50, leastBytesPerSecond: 1_000_000 }

describe('connections that send programs drawn at random', function () {
  this.timeout(120_000)
  let gateway: TransportGateway

  beforeEach(async () => {
    const uploads = { bodyMedia: MEDIA, maxBytes: 1_000_000 }
    gateway = await openTransportGateway(
      [
        route('audit', 'POST /v1/audit', { ...PRICED, ...uploads }),
        route('checkBars', 'POST /v1/bars/qc', { ...PRICED, ...uploads }),
        route('getCurrent', 'GET /v1/regime/current', PRICED),
        route('getSample', 'GET /v1/regime/sample'),
        route('freeAudit', 'POST /audit', uploads),
        route('signUp', 'POST /founding', uploads),
        route('getStart', 'GET /'),
      ],
      {
        trustedProxies: [PROXY],
        restTimes: { shortRestMs: 50, drainMs: 200 },
      },
    )
  })
  afterEach(() => gateway.close())

  const connections = (): Promise<number> =>
    new Promise((resolve, reject) =>
      gateway.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    )

  it('all end, and leave a gateway that keeps nothing and answers', async () => {
    const pace = new Pace(1_000)
    const run = async (program: Program): Promise<void> => {
      const began = performance.now()
      const { statuses } = await send(program, { port: gateway.port, pace, mostMs: MOST_MS, endMs: 100 })
      expect(performance.now() - began).to.be.below(MOST_MS)
      expect([...statuses.keys()]).not.to.include('500')
    }
    await fc.assert(
      fc.asyncProperty(fc.array(programs(SIZES), { minLength: 10, maxLength: 10 }), async (drawn) => {
        await Promise.all(drawn.map(run))
        await until(async () => (await connections()) === 0)
        expect(gateway.bodies.used).to.deep.equal({ arriving: 0, held: 0, disk: 0 })
        const answer = await fetch(`${gateway.url}/v1/regime/current`, { headers: { connection: 'close' } })
        expect(answer.status).to.equal(402)
        await answer.arrayBuffer()
      }),
      { numRuns: 10, seed: 3, endOnFailure: true },
    )
  })
})
