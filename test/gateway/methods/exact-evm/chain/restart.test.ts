import { expect } from 'chai'
import { createWalletClient, http } from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import type { Hex, Network } from '../../../../../gateway/config/networks.ts'
import { settleData, transferOf } from '../../../../../gateway/methods/exact-evm/eip3009.ts'
import { crashed, until, useScene } from '../../../../support/scene.ts'
import { newPayload, newRequirements, newSettleKey, PRICE, submitted } from '../../../../support/settling.ts'
import { newNonce } from '../../../../support/wallet.ts'

describe('the chain settler after a restart', () => {
  const scene = useScene()

  it('sends a transaction that was recorded and not sent, unchanged', async () => {
    const payload = await scene.pay()
    const intent = await crashed(scene, await scene.open(), payload)
    const settler = await scene.open()
    const row = submitted(payload, scene.requirements, intent)
    expect(await settler.status(row)).to.include({ state: 'pending' })
    await until(async () => (await settler.status(row)).state === 'settled')
    expect(await scene.received()).to.equal(PRICE)
  })

  it('fills the nonce gap below a recorded transaction if the one before it was not recorded', async () => {
    const first = await scene.open()
    const payload = await scene.pay()
    const held = first.settle(await scene.pay(), scene.requirements, {
      wait: 'confirmed',
      record: () => new Promise(() => {}),
    })
    void held
    await new Promise((wake) => setTimeout(wake, 100))
    const intent = await crashed(scene, first, payload)
    const settler = await scene.open()
    const row = submitted(payload, scene.requirements, intent)
    await settler.status(row)
    await until(async () => (await settler.status(row)).state === 'settled')
    expect(await scene.received()).to.equal(PRICE)
  })

  it('reports a payment as settled if somebody else sent its authorization', async () => {
    const payload = await scene.pay()
    const intent = await crashed(scene, await scene.open(), payload)
    const account = privateKeyToAccount(await newSettleKey(scene.chain))
    const other = createWalletClient({ account, chain: baseSepolia, transport: http(scene.chain.rpcUrl) })
    const transaction = await other.sendTransaction({
      to: scene.chain.network.asset,
      data: settleData(transferOf(payload)),
    })
    const settler = await scene.open({ key: await newSettleKey(scene.chain) })
    await until(async () => (await scene.chain.rpc.call('eth_getTransactionReceipt', transaction)) !== null)
    const row = submitted(payload, scene.requirements, intent)
    expect(await settler.status(row)).to.deep.equal({ state: 'settled', transaction })
  })

  it('reports a payment as refused if the payer used the authorization elsewhere or cancelled it', async () => {
    const account = privateKeyToAccount(await newSettleKey(scene.chain))
    const other = createWalletClient({ account, chain: baseSepolia, transport: http(scene.chain.rpcUrl) })
    const send = async (data: Hex): Promise<void> => {
      const hash = await other.sendTransaction({ to: scene.chain.network.asset, data })
      await until(async () => (await scene.chain.rpc.call('eth_getTransactionReceipt', hash)) !== null)
    }
    const settler = await scene.open()
    const nonce = newNonce()
    const payload = await newPayload(scene.chain, scene.buyer, scene.requirements, { signed: { nonce } })
    const intent = await crashed(scene, await scene.open(), payload)
    await send(
      settleData(
        transferOf(await newPayload(scene.chain, scene.buyer, newRequirements(scene.chain), { signed: { nonce } })),
      ),
    )
    expect(await settler.status(submitted(payload, scene.requirements, intent))).to.include({
      state: 'refused',
      reason: 'invalid_transaction_state',
    })
    const doomed = await scene.pay()
    const lost = await crashed(scene, await scene.open(), doomed)
    await send(await cancelData(scene.chain.network, scene.buyer, transferOf(doomed).nonce))
    const outcome = await settler.status(submitted(doomed, scene.requirements, lost))
    expect(outcome).to.include({ state: 'refused', message: 'The payer cancelled the authorization.' })
    expect(await scene.received()).to.equal(0n)
  })

  it('reports a payment as pending until the time of the chain is past validBefore, then as refused', async () => {
    const payload = await scene.pay()
    const intent = await crashed(scene, await scene.open(), payload)
    const settler = await scene.open({ key: await newSettleKey(scene.chain) })
    const row = submitted(payload, scene.requirements, intent)
    expect(await settler.status(row)).to.include({ state: 'pending' })
    await scene.chain.advance(320)
    expect(await settler.status(row)).to.include({
      state: 'refused',
      reason: 'invalid_exact_evm_payload_authorization_valid_before',
    })
    expect(await scene.received()).to.equal(0n)
  })

  it('reports a payment as pending while the chain cannot be read', async () => {
    const payload = await scene.pay()
    const settler = await scene.open()
    const intent = await crashed(scene, settler, payload)
    scene.proxy.script(() => ({ status: 502, body: 'bad gateway' }))
    expect(await settler.status(submitted(payload, scene.requirements, intent))).to.include({ state: 'pending' })
  })
})

/** Call data of EIP-3009 cancelAuthorization, signed by the payer. */
async function cancelData(network: Network, account: PrivateKeyAccount, nonce: Hex): Promise<Hex> {
  const signature = await account.signTypedData({
    domain: { ...network.domain, chainId: network.chainId, verifyingContract: network.asset },
    types: {
      CancelAuthorization: [
        { name: 'authorizer', type: 'address' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'CancelAuthorization',
    message: { authorizer: account.address, nonce },
  })
  const [r, s, v] = [signature.slice(2, 66), signature.slice(66, 130), signature.slice(130)]
  const authorizer = account.address.slice(2).toLowerCase().padStart(64, '0')
  return `0x5a049a70${authorizer}${nonce.slice(2)}${v.padStart(64, '0')}${r}${s}`
}
