import { expect } from 'chai'
import { createHostPace, type HostPace } from '../../../../plugins/potus/ingest/pace-per-host.ts'

const ADDRESS = 'https://a.example/feed'
const { signal } = new AbortController()

describe('the pace of requests to one host', () => {
  let clock: number
  let waits: number[]
  let pace: HostPace
  const request = (address = ADDRESS): Promise<void> => pace.run(address, signal, async () => void (clock += 500))

  beforeEach(() => {
    clock = 0
    waits = []
    pace = createHostPace({
      now: () => clock,
      wait: async (ms) => {
        waits.push(ms)
        clock += ms
      },
    })
  })

  it('pauses after a request that had ended before the next one was asked for', async () => {
    await request()
    clock += 200
    await request()
    expect(waits).to.deep.equal([800])
  })

  it('pauses between requests that are asked for at once', async () => {
    await Promise.all([request(), request(), request()])
    expect(waits).to.deep.equal([1000, 1000])
  })

  it('pauses no longer than it has to, whatever becomes of the clock', async () => {
    await request()
    clock += 1000
    await request()
    expect(waits).to.deep.equal([])
    clock -= 3_600_000
    await request()
    expect(waits).to.deep.equal([1000])
  })

  it('lets a request to another host go at once', async () => {
    await request()
    await request('https://b.example/feed')
    expect(waits).to.deep.equal([])
  })

  it('pauses after a request that failed', async () => {
    const failed = await pace
      .run(ADDRESS, signal, () => Promise.reject(new Error('no answer')))
      .catch((error: Error) => error.message)
    await request()
    expect([failed, waits]).to.deep.equal(['no answer', [1000]])
  })
})
