import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import { timeoutSignal } from '../../../gateway/plugin/timeout-signal.ts'
import { startLoopbackServer } from '../../support/loopback-server.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

describe('a timeout signal', () => {
  it('aborts with a TimeoutError', async () => {
    const signal = timeoutSignal(5)
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    expect(signal.reason).to.be.an.instanceof(DOMException).with.property('name', 'TimeoutError')
  })

  it('ends a request to a silent server, combined with another signal, though garbage was collected meanwhile', async () => {
    const server = await startLoopbackServer(() => new Promise(() => {}))
    const caller = new AbortController()
    try {
      const asked = Array.from({ length: 20 }, () =>
        fetch(server.url, { signal: AbortSignal.any([caller.signal, timeoutSignal(300)]) }).catch(
          (error: Error) => error.name,
        ),
      )
      for (let turn = 0; turn < 5; turn += 1) {
        await sleep(20)
        collectGarbage()
      }
      const answers = await Promise.race([Promise.all(asked), sleep(5_000, 'some requests go on for ever')])
      expect(answers).to.deep.equal(asked.map(() => 'TimeoutError'))
    } finally {
      caller.abort()
      await server.close()
    }
  })
})
