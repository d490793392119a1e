import { expect } from 'chai'
import * as fc from 'fast-check'
import { domainSeparator, hashTypedData, type Hex, numberToHex, parseEventLogs } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { openSandbox, type Sandbox } from '../../../gateway/sandbox/sandbox.ts'
import { compile } from '../../../scripts/compile.ts'
import {
  abiOf,
  authorization,
  createUsdcClient,
  newNonce,
  nowSeconds,
  quiet,
  skipWithoutAnvil,
  split,
  temporaryFolder,
  TOKEN,
  TYPES,
  transferArguments,
} from './usdc-client.ts'

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const WALLET = `// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;
contract Wallet {
  function isValidSignature(bytes32 digest, bytes calldata signature) external pure returns (bytes4) {
    return keccak256(signature) == keccak256(abi.encode(digest)) ? bytes4(0x1626ba7e) : bytes4(0);
  }
}`

describe('the test USDC', () => {
  const folder = temporaryFolder()
  const payer = privateKeyToAccount(generatePrivateKey())
  const payee = privateKeyToAccount(generatePrivateKey()).address
  const from = payer.address
  let sandbox: Sandbox | undefined
  let usdc: ReturnType<typeof createUsdcClient>

  const refusal = async (functionName: string, args: readonly unknown[]): Promise<string> =>
    usdc.write(functionName, args).then(
      () => 'accepted',
      (error: { shortMessage?: string; message: string }) => error.message,
    )

  before(async function () {
    skipWithoutAnvil(this)
    sandbox = await openSandbox({ dataDir: folder.path, blockSeconds: 0, log: quiet })
    usdc = createUsdcClient(sandbox.rpcUrl, sandbox.settleKey)
    await usdc.write('mint', [from, 1_000_000_000n])
  })
  after(async () => {
    await sandbox?.close()
    folder.remove()
  })

  it('has the name and the EIP-712 domain of USDC on Base Sepolia', async () => {
    expect(await usdc.read('name')).to.equal('USDC')
    expect(await usdc.read('version')).to.equal('2')
    expect(await usdc.read('decimals')).to.equal(6)
    expect(await usdc.read('DOMAIN_SEPARATOR')).to.equal(domainSeparator({ domain: usdc.domain }))
  })

  it('has the name USD Coin on chain 8453', async () => {
    await usdc.client.request({ method: 'anvil_setChainId' as never, params: [8453] as never })
    try {
      expect(await usdc.read('name')).to.equal('USD Coin')
    } finally {
      await usdc.client.request({ method: 'anvil_setChainId' as never, params: [84532] as never })
    }
    expect(await usdc.read('name')).to.equal('USDC')
  })

  it('has the type hashes of EIP-3009', async () => {
    expect(await usdc.read('TRANSFER_WITH_AUTHORIZATION_TYPEHASH')).to.equal(
      '0x7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267',
    )
    expect(await usdc.read('RECEIVE_WITH_AUTHORIZATION_TYPEHASH')).to.equal(
      '0xd099cc98ef71107a616c4f0f941f04c322d8e254fe26b3c6668db87aae413de8',
    )
    expect(await usdc.read('CANCEL_AUTHORIZATION_TYPEHASH')).to.equal(
      '0x158b0a9edf7a828aad02f63cd515c68ef2f50ba807396f6d12842833a1597429',
    )
  })

  it('transfers exactly the signed amount with either form of signature, and logs two events', async () => {
    await fc.assert(
      fc.asyncProperty(fc.bigInt({ min: 0n, max: 20_000_000n }), fc.boolean(), async (value, bytesForm) => {
        const message = authorization({ from, to: payee, value })
        const signature = await usdc.sign(payer, message)
        const [payerBefore, payeeBefore, supply] = await Promise.all([
          usdc.balance(from),
          usdc.balance(payee),
          usdc.read('totalSupply'),
        ])
        const receipt = await usdc.write('transferWithAuthorization', [
          ...transferArguments(message),
          ...(bytesForm ? [signature] : split(signature)),
        ])
        expect(await usdc.balance(from)).to.equal(payerBefore - value)
        expect(await usdc.balance(payee)).to.equal(payeeBefore + value)
        expect(await usdc.read('totalSupply')).to.equal(supply)
        expect(await usdc.isUsed(from, message.nonce)).to.equal(true)
        const events = parseEventLogs({ abi: abiOf('usdc'), logs: receipt.logs })
        expect(events.map(({ eventName, args }) => ({ eventName, args }))).to.deep.equal([
          { eventName: 'AuthorizationUsed', args: { authorizer: from, nonce: message.nonce } },
          { eventName: 'Transfer', args: { from, to: payee, value } },
        ])
      }),
      { numRuns: 20 },
    )
  })

  it('accepts an authorization once', async () => {
    const message = authorization({ from, to: payee })
    const args = [...transferArguments(message), ...split(await usdc.sign(payer, message))]
    await usdc.write('transferWithAuthorization', args)
    expect(await refusal('transferWithAuthorization', args)).to.contain(
      'FiatTokenV2: authorization is used or canceled',
    )
  })

  it("refuses more than the payer's balance, and the authorization stays unused", async () => {
    const message = authorization({ from, to: payee, value: (await usdc.balance(from)) + 1n })
    const args = [...transferArguments(message), ...split(await usdc.sign(payer, message))]
    expect(await refusal('transferWithAuthorization', args)).to.contain('ERC20: transfer amount exceeds balance')
    expect(await usdc.isUsed(from, message.nonce)).to.equal(false)
  })

  it('refuses an authorization outside its validity period, both ends excluded', async () => {
    const time = nowSeconds() + 10_000n
    const expiring = authorization({ from, to: payee, validBefore: time })
    const beginning = authorization({ from, to: payee, validAfter: time, validBefore: time + 100n })
    const call = async (message: typeof expiring, at: bigint): Promise<string> => {
      const args = [...transferArguments(message), ...split(await usdc.sign(payer, message))]
      const request = { address: TOKEN, abi: abiOf('usdc'), functionName: 'transferWithAuthorization', args } as const
      return usdc.client.simulateContract({ ...request, blockOverrides: { time: at } }).then(
        () => 'accepted',
        (error: Error) => error.message,
      )
    }
    expect(await call(expiring, time)).to.contain('FiatTokenV2: authorization is expired')
    expect(await call(expiring, time - 1n)).to.equal('accepted')
    expect(await call(beginning, time)).to.contain('FiatTokenV2: authorization is not yet valid')
    expect(await call(beginning, time + 1n)).to.equal('accepted')
  })

  it('refuses a high s, a v other than 27 and 28, and a signature that is too short', async () => {
    const message = authorization({ from, to: payee })
    const [v, r, s] = split(await usdc.sign(payer, message)) as [number, Hex, Hex]
    const high = numberToHex(ORDER - BigInt(s), { size: 32 })
    const attempt = (...signature: unknown[]): Promise<string> =>
      refusal('transferWithAuthorization', [...transferArguments(message), ...signature])
    expect(await attempt(v === 27 ? 28 : 27, r, high)).to.contain("ECRecover: invalid signature 's' value")
    for (const wrong of [0, 1, 26, 29])
      expect(await attempt(wrong, r, s)).to.contain("ECRecover: invalid signature 'v' value")
    expect(await attempt(`${r}${s.slice(2)}`)).to.contain('ECRecover: invalid signature length')
    expect(await attempt(v, r, s)).to.equal('accepted')
  })

  it('refuses a signature over any other value', async () => {
    const message = authorization({ from, to: payee })
    const signature = await usdc.sign(payer, message)
    const changes = {
      to: privateKeyToAccount(generatePrivateKey()).address,
      value: message.value + 1n,
      validAfter: 1n,
      validBefore: message.validBefore + 1n,
      nonce: newNonce(),
    }
    for (const [name, value] of Object.entries(changes)) {
      const args = [...transferArguments({ ...message, [name]: value }), ...split(signature)]
      expect(await refusal('transferWithAuthorization', args), name).to.match(
        /FiatTokenV2: invalid signature|ECRecover/,
      )
    }
    const received = [
      ...transferArguments(message),
      ...split(await usdc.sign(payer, message, 'ReceiveWithAuthorization')),
    ]
    expect(await refusal('transferWithAuthorization', received)).to.contain('FiatTokenV2: invalid signature')
  })

  it('lets the payer cancel an authorization, which then transfers nothing', async () => {
    const message = authorization({ from, to: payee })
    const stranger = privateKeyToAccount(generatePrivateKey())
    const foreign = split(await usdc.signCancel(stranger, from, message.nonce))
    expect(await refusal('cancelAuthorization', [from, message.nonce, ...foreign])).to.contain('invalid signature')
    const own = split(await usdc.signCancel(payer, from, message.nonce))
    const receipt = await usdc.write('cancelAuthorization', [from, message.nonce, ...own])
    expect(parseEventLogs({ abi: abiOf('usdc'), logs: receipt.logs }).map(({ eventName }) => eventName)).to.deep.equal([
      'AuthorizationCanceled',
    ])
    expect(await usdc.isUsed(from, message.nonce)).to.equal(true)
    const args = [...transferArguments(message), ...split(await usdc.sign(payer, message))]
    expect(await refusal('transferWithAuthorization', args)).to.contain('used or canceled')
    expect(await refusal('cancelAuthorization', [from, message.nonce, ...own])).to.contain('used or canceled')
  })

  it('lets only the payee use an authorization to receive', async () => {
    const receiver = usdc.client.account.address
    const to = async (address: Hex) => {
      const message = authorization({ from, to: address })
      return [...transferArguments(message), await usdc.sign(payer, message, 'ReceiveWithAuthorization')]
    }
    expect(await refusal('receiveWithAuthorization', await to(payee))).to.contain('caller must be the payee')
    const before = await usdc.balance(receiver)
    await usdc.write('receiveWithAuthorization', await to(receiver))
    expect(await usdc.balance(receiver)).to.equal(before + 5_000n)
  })

  it('accepts for a contract wallet only the signature that its contract accepts (ERC-1271)', async () => {
    const owner = privateKeyToAccount(generatePrivateKey())
    const wallet = owner.address
    await usdc.client.setCode({ address: wallet, bytecode: compile('Wallet', WALLET).runtime })
    await usdc.write('mint', [wallet, 10_000n])
    const message = authorization({ from: wallet, to: payee })
    const ownKey = [...transferArguments(message), ...split(await usdc.sign(owner, message))]
    expect(await refusal('transferWithAuthorization', ownKey)).to.contain('FiatTokenV2: invalid signature')
    const digest = hashTypedData({
      domain: usdc.domain,
      types: TYPES,
      primaryType: 'TransferWithAuthorization',
      message,
    })
    await usdc.write('transferWithAuthorization', [...transferArguments(message), digest])
    expect(await usdc.balance(wallet)).to.equal(5_000n)
  })

  it('transfers and spends approved amounts, as an ERC-20 does', async () => {
    const owner = usdc.client.account.address
    const spender = privateKeyToAccount(generatePrivateKey())
    await usdc.client.setBalance({ address: spender.address, value: 10n ** 18n })
    await usdc.write('mint', [owner, 1_000n])
    const before = await usdc.balance(payee)
    await usdc.write('transfer', [payee, 400n])
    await usdc.write('approve', [spender.address, 300n])
    await usdc.write('transferFrom', [owner, payee, 200n], spender)
    expect(await usdc.balance(payee)).to.equal(before + 600n)
    expect(await usdc.read('allowance', owner, spender.address)).to.equal(100n)
    const tooMuch = usdc.write('transferFrom', [owner, payee, 101n], spender)
    expect(await tooMuch.catch((error: Error) => error.message)).to.contain('exceeds allowance')
  })
})
