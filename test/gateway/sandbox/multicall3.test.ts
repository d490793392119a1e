import { expect } from 'chai'
import type { Hex } from 'viem'
import { MULTICALL3 } from '../../../gateway/methods/exact-evm/multicall.ts'
import { openSandbox, type Sandbox } from '../../../gateway/sandbox/sandbox.ts'
import { abiOf, createUsdcClient, quiet, receiptOf, skipWithoutAnvil, temporaryFolder, TOKEN } from './usdc-client.ts'

describe('Multicall3 of the sandbox', () => {
  const folder = temporaryFolder()
  const usdc = { address: TOKEN, abi: abiOf('usdc') } as const
  const multicall = { address: MULTICALL3, abi: abiOf('multicall3') } as const
  /** Call data that matches no function of the token. */
  const nonsense: Hex = '0x12345678'
  let sandbox: Sandbox | undefined
  let client: ReturnType<typeof createUsdcClient>['client']

  const aggregated = (functionName: string, ...args: unknown[]): Promise<unknown> =>
    client.readContract({ ...multicall, functionName, args }).catch((error: Error) => error.message)

  before(async function () {
    skipWithoutAnvil(this)
    sandbox = await openSandbox({ dataDir: folder.path, blockSeconds: 0, log: quiet })
    client = createUsdcClient(sandbox.rpcUrl, sandbox.settleKey).client
  })
  after(async () => {
    await sandbox?.close()
    folder.remove()
  })

  it('answers many reads in one call, as viem sends them, and reports failures separately', async () => {
    const results = await client.multicall({
      contracts: [
        { ...usdc, functionName: 'version' },
        { ...usdc, functionName: 'transferFrom', args: [MULTICALL3, TOKEN, 1n] },
        { ...usdc, functionName: 'symbol' },
      ],
    })
    expect(results.map(({ status, result }) => [status, result])).to.deep.equal([
      ['success', '2'],
      ['failure', undefined],
      ['success', 'USDC'],
    ])
  })

  it('fails as a whole if a call that must not fail does', async () => {
    const call = { target: TOKEN, callData: nonsense }
    expect(await aggregated('tryAggregate', true, [call])).to.contain('Multicall3: call failed')
    expect(await aggregated('aggregate', [call])).to.contain('Multicall3: call failed')
    expect(await aggregated('aggregate3', [{ ...call, allowFailure: false }])).to.contain('Multicall3: call failed')
    expect(await aggregated('tryAggregate', false, [call])).to.deep.equal([{ success: false, returnData: '0x' }])
    expect(await aggregated('aggregate3', [{ ...call, allowFailure: true }])).to.deep.equal([
      { success: false, returnData: '0x' },
    ])
  })

  it('forwards values only if they add up', async () => {
    const target = '0x000000000000000000000000000000000000bEEF'
    const calls = [1n, 2n].map((value) => ({ target, allowFailure: false, value, callData: '0x' }))
    const send = async (value: bigint) => {
      const { request } = await client.simulateContract({
        ...multicall,
        functionName: 'aggregate3Value',
        args: [calls],
        value,
      })
      await receiptOf(client, await client.writeContract(request))
    }
    expect(await send(4n).catch((error: Error) => error.message)).to.contain('Multicall3: value mismatch')
    await send(3n)
    expect(await client.getBalance({ address: target })).to.equal(3n)
  })

  it('reports the chain that it runs on', async () => {
    expect(await aggregated('getChainId')).to.equal(84532n)
    expect(await aggregated('getBlockNumber')).to.equal(await client.getBlockNumber({ cacheTime: 0 }))
    expect(await aggregated('getEthBalance', client.account.address)).to.equal(
      await client.getBalance({ address: client.account.address }),
    )
  })
})
