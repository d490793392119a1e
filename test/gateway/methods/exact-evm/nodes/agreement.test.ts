import { expect } from 'chai'
import { createLog } from '../../../../../gateway/observe/log.ts'
import { askTwoNodes, createCanAgree } from '../../../../../gateway/methods/exact-evm/nodes/agreement.ts'
import { createNodes } from '../../../../../gateway/methods/exact-evm/nodes/nodes.ts'
import { startChain, type TestChain } from '../../../../support/chain.ts'
import { type Proxy, startProxy } from '../../../../support/proxy.ts'
import { until } from '../../../../support/until.ts'

const LARGE = 1_000_000n
const log = createLog('silent')

describe('a large payment that two nodes have to agree on', () => {
  let chain: TestChain
  let nodes: readonly [Proxy, Proxy]
  let assertCanAgree: (amount: bigint) => Promise<void>

  before(async function () {
    chain = await startChain(this)
  })
  beforeEach(async () => {
    nodes = [await startProxy(chain.rpcUrl), await startProxy(chain.rpcUrl)]
    const addresses = nodes.map(({ url }) => url).join(',')
    assertCanAgree = createCanAgree({
      from: LARGE,
      nodes: createNodes({ addresses, network: chain.network, log }),
      log,
    })
  })
  afterEach(async () => {
    await Promise.all(nodes.map((node) => node.close()))
  })
  after(() => chain?.stop())

  const asked = (): readonly number[] =>
    nodes.map(({ requests }) => requests.filter((body) => body.includes('eth_blockNumber')).length)
  const codeOf = (work: Promise<void>): Promise<string> =>
    work.then(
      () => 'taken',
      (error: { code: string }) => error.code,
    )

  it('is taken while both are there, and payments of the same moment ask each node once', async () => {
    await Promise.all(Array.from({ length: 20 }, () => assertCanAgree(LARGE)))
    expect(asked()).to.deep.equal([1, 1])
    await assertCanAgree(LARGE - 1n)
    expect(asked()).to.deep.equal([1, 1])
  })

  it('is refused while one is down, and taken as soon as it is back', async () => {
    await nodes[1].down()
    expect(await codeOf(assertCanAgree(LARGE))).to.equal('settler_unavailable')
    await nodes[1].up()
    expect(await codeOf(assertCanAgree(LARGE))).to.equal('taken')
  })

  it('is refused if one goes down later', async () => {
    await assertCanAgree(LARGE)
    await nodes[0].down()
    await until(async () => (await codeOf(assertCanAgree(LARGE))) === 'settler_unavailable')
    expect(await codeOf(assertCanAgree(LARGE))).to.equal('settler_unavailable')
  })

  it('is logged once, and not at every look, while nodes say different things about it', async () => {
    const warned: unknown[] = []
    const agreement = {
      from: LARGE,
      nodes: createNodes({ addresses: nodes.map(({ url }) => url).join(','), network: chain.network, log }),
      log: { ...log, warn: (fields: unknown) => warned.push(fields) } as unknown as typeof log,
    }
    let looks = 0
    const look = (transaction: string): Promise<unknown> =>
      askTwoNodes(
        agreement,
        async () => `look ${++looks}`,
        (answer) => answer,
        { transaction },
      )
    for (const transaction of ['0x01', '0x01', '0x02', '0x01', '0x02']) expect(await look(transaction)).to.equal(null)
    expect(looks).to.equal(10)
    expect(warned).to.have.length(2)
    expect(warned).to.have.nested.property('[1].transaction', '0x02')
  })
})
