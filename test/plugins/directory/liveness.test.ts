import { expect } from 'chai'
import {
  healthAfter,
  type Finding,
  isHidden,
  judgeVisit,
  type Status,
  UNVISITED,
} from '../../../plugins/directory/liveness.ts'
import type { Visit } from '../../../plugins/directory/visits.ts'

const answered = (status: number, body = ''): Visit => ({ failure: null, status, body, paymentRequired: null })
const readableRequirements = JSON.stringify({
  accepts: [{ scheme: 'exact', network: 'base', asset: '0xA', maxAmountRequired: '5', payTo: '0xB' }],
})

describe('a visit to a service', () => {
  const cases: readonly (readonly [string, Visit, Status, Status])[] = [
    ['gets a readable 402', answered(402, readableRequirements), 'alive', 'alive'],
    ['gets an unreadable 402', answered(402, 'pay!'), 'dead', 'dead'],
    ['gets a 429', answered(429), 'alive', 'alive'],
    ['gets a 401', answered(401), 'auth_gated', 'auth_gated'],
    ['gets a 403', answered(403), 'auth_gated', 'auth_gated'],
    ['gets a 405', answered(405), 'auth_gated', 'alive'],
    ['gets a 415', answered(415), 'auth_gated', 'alive'],
    ['gets a 404', answered(404), 'missing', 'missing'],
    ['gets a 410', answered(410), 'missing', 'missing'],
    ['gets a 500', answered(500), 'dead', 'dead'],
    ['gets a 503', answered(503), 'dead', 'dead'],
    ['gets a 200 without a payment', answered(200, '{}'), 'unknown', 'alive'],
    ['gets a 400', answered(400), 'unknown', 'alive'],
    ['gets a redirect without a target', answered(302), 'unknown', 'unknown'],
    ['gets no answer', { failure: 'unreachable', reason: 'ENOTFOUND' }, 'dead', 'dead'],
    ['is not made because the address is private', { failure: 'refused', reason: 'a private address' }, 'dead', 'dead'],
  ]
  for (const [outcome, visit, paidStatus, serverStatus] of cases)
    it(`that ${outcome} counts as ${paidStatus} for a paid endpoint and as ${serverStatus} for an MCP or A2A server`, () => {
      expect(judgeVisit(visit, 'http_endpoint').status).to.equal(paidStatus)
      expect(judgeVisit(visit, 'mcp_tool').status).to.equal(paidStatus)
      expect(judgeVisit(visit, 'mcp_server').status).to.equal(serverStatus)
      expect(judgeVisit(visit, 'a2a_agent').status).to.equal(serverStatus)
    })
})

describe('several visits', () => {
  const afterVisits = (...findings: readonly Status[]) => {
    let health = UNVISITED
    const seen = findings.map((status, at) => {
      const finding: Finding = { status, terms: [] }
      health = healthAfter(health, answered(200), finding, at)
      return health.status
    })
    return { seen, health }
  }

  it('mark a service as alive after two good ones in a row', () => {
    expect(afterVisits('alive', 'alive').seen).to.deep.equal(['unknown', 'alive'])
    expect(afterVisits('alive', 'dead', 'alive', 'alive').seen).to.deep.equal([
      'unknown',
      'unknown',
      'unknown',
      'alive',
    ])
    expect(afterVisits('auth_gated', 'auth_gated').seen).to.deep.equal(['unknown', 'auth_gated'])
  })

  it('hide a service after three bad ones in a row', () => {
    expect(afterVisits('alive', 'alive', 'dead', 'missing', 'dead').seen).to.deep.equal([
      'unknown',
      'alive',
      'alive',
      'alive',
      'dead',
    ])
    expect(afterVisits('alive', 'alive', 'dead', 'dead', 'alive', 'dead', 'dead').seen.at(-1)).to.equal('alive')
    expect(afterVisits('missing', 'missing', 'missing').seen.at(-1)).to.equal('missing')
    expect(
      ['dead', 'missing', 'alive', 'auth_gated', 'unknown'].map((status) => isHidden(status as Status)),
    ).to.deep.equal([true, true, false, false, false])
  })

  it('keep the status of a service when one is inconclusive', () => {
    expect(afterVisits('alive', 'unknown', 'alive').seen.at(-1)).to.equal('alive')
    expect(afterVisits('dead', 'dead', 'unknown', 'dead').seen.at(-1)).to.equal('dead')
  })

  it('restore a hidden service when it answers again', () => {
    expect(afterVisits('dead', 'dead', 'dead', 'alive', 'alive').seen).to.deep.equal([
      'unknown',
      'unknown',
      'dead',
      'dead',
      'alive',
    ])
  })

  it('record when a service was last alive and why its address was refused', () => {
    const { health } = afterVisits('alive', 'dead')
    expect([health.last_alive, health.last_checked]).to.deep.equal([0, 1])
    const refused: Visit = { failure: 'refused', reason: 'a private address' }
    expect(healthAfter(health, refused, judgeVisit(refused, 'http_endpoint'), 2)).to.include({
      refusal: 'a private address',
      http_status: null,
    })
  })
})
