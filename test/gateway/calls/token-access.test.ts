import { expect } from 'chai'
import { untilTokenExpires } from '../../../gateway/calls/token-access.ts'
import type { ServerEvent } from '../../../gateway/plugin/plugin.ts'

/** Yields events with these ids, then waits forever. Counts how often it was stopped. */
function sourceOf(...ids: readonly string[]) {
  const source = {
    stopped: 0,
    [Symbol.asyncIterator]: () => {
      const waiting = [...ids]
      return {
        next: async () =>
          waiting.length > 0
            ? { done: false as const, value: { id: waiting.shift() as string, data: null } }
            : new Promise<never>(() => {}),
        return: async () => {
          source.stopped += 1
          return { done: true as const, value: undefined }
        },
      }
    },
  }
  return source
}

const idsOf = async (events: AsyncIterable<ServerEvent>, onEvent: (id: string) => unknown = () => {}) => {
  const seen: string[] = []
  for await (const { id = '' } of events) {
    seen.push(id)
    onEvent(id)
  }
  return seen
}

const neverExpires = (): number => Infinity

describe('an event stream that was opened with an access token', () => {
  it('ends when the token expires, and checks the token only a few times until then', async () => {
    const source = sourceOf('1')
    const expiresAt = Date.now() + 120
    const checks: number[] = []
    // A busy machine may be slower than that: the token is good for the first event, however late it is.
    let hasBegun = false
    const isValid = async (): Promise<boolean> => {
      checks.push(Date.now() - expiresAt)
      return !hasBegun || Date.now() < expiresAt
    }
    const stream = untilTokenExpires(source, { isValid, remainingMs: () => expiresAt - Date.now() }, 600_000)
    expect(await idsOf(stream, () => (hasBegun = true))).to.deep.equal(['1'])
    expect(source.stopped).to.equal(1)
    expect(checks.length).to.be.below(10)
    expect(checks.at(-1)).to.be.at.least(0)
  })

  it('ends before the next event once the token is revoked, and stops its source', async () => {
    const source = sourceOf('1', '2', '3')
    let valid = true
    const stream = untilTokenExpires(source, { isValid: async () => valid, remainingMs: neverExpires }, 10)
    const seen = await idsOf(stream, (id) => {
      if (id === '2') valid = false
    })
    expect([seen, source.stopped]).to.deep.equal([['1', '2'], 1])
  })

  it('ends while no event comes once the token is revoked, and stops its source', async () => {
    const source = sourceOf('1')
    let checks = 0
    const isValid = async (): Promise<boolean> => (checks += 1) < 4
    const stream = untilTokenExpires(source, { isValid, remainingMs: neverExpires }, 10)
    expect([await idsOf(stream), source.stopped]).to.deep.equal([['1'], 1])
  })

  it('ends when the token cannot be checked', async () => {
    const source = sourceOf('1')
    const isValid = async (): Promise<boolean> => {
      throw new Error('no keys')
    }
    const stream = untilTokenExpires(source, { isValid, remainingMs: neverExpires }, 10)
    expect([await idsOf(stream), source.stopped]).to.deep.equal([[], 1])
  })
})
