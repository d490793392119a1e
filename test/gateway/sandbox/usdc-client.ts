/** A client of the test USDC, and other helpers for tests of the sandbox. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pino } from 'pino'
import {
  type Abi,
  createTestClient,
  type Hex,
  http,
  parseSignature,
  type PublicClient,
  publicActions,
  type TransactionReceipt,
  walletActions,
} from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import { anvilBinary } from '../../../gateway/sandbox/anvil.ts'
import type { Sandbox } from '../../../gateway/sandbox/sandbox.ts'
import { until } from '../../support/until.ts'

export const ROOT = resolve(import.meta.dirname, '../../..')
export const TOKEN = NETWORKS['base-sepolia'].asset
export const quiet = pino({ level: 'silent' })

/** Skips a suite on a platform for which npm has no chain program, and prints why. */
export function skipWithoutAnvil(context: Mocha.Context): void {
  try {
    anvilBinary()
  } catch (error) {
    process.stdout.write(`    ${(error as Error).message}\n`)
    context.skip()
  }
}

export function temporaryFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'tollgate-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

export function abiOf(name: 'usdc' | 'multicall3'): Abi {
  const text = readFileSync(join(ROOT, 'gateway', 'sandbox', `${name}.json`), 'utf8')
  return (JSON.parse(text) as { abi: Abi }).abi
}

const fields = [
  { name: 'from', type: 'address' },
  { name: 'to', type: 'address' },
  { name: 'value', type: 'uint256' },
  { name: 'validAfter', type: 'uint256' },
  { name: 'validBefore', type: 'uint256' },
  { name: 'nonce', type: 'bytes32' },
] as const
export const TYPES = {
  TransferWithAuthorization: fields,
  ReceiveWithAuthorization: fields,
  CancelAuthorization: [
    { name: 'authorizer', type: 'address' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

export interface Authorization {
  readonly from: Hex
  readonly to: Hex
  readonly value: bigint
  readonly validAfter: bigint
  readonly validBefore: bigint
  readonly nonce: Hex
}

export const newNonce = (): Hex => `0x${randomBytes(32).toString('hex')}`
export const nowSeconds = (): bigint => BigInt(Math.floor(Date.now() / 1000))

/**
 * Waits for the receipt of a transaction. viem's own wait looks again once there is a new block, and a chain that mines on
 * demand makes none until the next transaction.
 */
export async function receiptOf(
  client: Pick<PublicClient, 'getTransactionReceipt'>,
  hash: Hex,
): Promise<TransactionReceipt> {
  let receipt: TransactionReceipt | undefined
  await until(async () => {
    receipt = await client.getTransactionReceipt({ hash }).catch(() => undefined)
    return receipt !== undefined
  })
  return receipt as TransactionReceipt
}

/** Creates a client of the test USDC on a chain. `write` sends from the gas account and throws the token's message if it reverts. */
export function createUsdcClient(rpcUrl: string, settleKey: Hex = generatePrivateKey()) {
  const chain = { ...baseSepolia, rpcUrls: { default: { http: [rpcUrl] } } }
  const client = createTestClient({
    chain,
    mode: 'anvil',
    transport: http(rpcUrl),
    pollingInterval: 20,
    account: privateKeyToAccount(settleKey),
  })
    .extend(publicActions)
    .extend(walletActions)
  const contract = { address: TOKEN, abi: abiOf('usdc') }
  const domain = { name: 'USDC', version: '2', chainId: 84532, verifyingContract: TOKEN } as const

  const read = (functionName: string, ...args: unknown[]): Promise<unknown> =>
    client.readContract({ ...contract, functionName, args })

  return {
    client,
    domain,
    read,
    balance: (account: Hex): Promise<bigint> => read('balanceOf', account) as Promise<bigint>,
    isUsed: (account: Hex, nonce: Hex): Promise<boolean> =>
      read('authorizationState', account, nonce) as Promise<boolean>,
    async write(functionName: string, args: readonly unknown[], account = client.account) {
      const { request } = await client.simulateContract({
        ...contract,
        functionName,
        args,
        account,
        blockTag: 'pending',
      })
      return receiptOf(client, await client.writeContract(request))
    },
    sign: (
      signer: PrivateKeyAccount,
      message: Authorization,
      primaryType: 'TransferWithAuthorization' | 'ReceiveWithAuthorization' = 'TransferWithAuthorization',
    ): Promise<Hex> => signer.signTypedData({ domain, types: TYPES, primaryType, message }),
    signCancel: (signer: PrivateKeyAccount, authorizer: Hex, nonce: Hex): Promise<Hex> =>
      signer.signTypedData({
        domain,
        types: TYPES,
        primaryType: 'CancelAuthorization',
        message: { authorizer, nonce },
      }),
  }
}

/** Creates an authorization that is valid now, with the given changes. */
export function authorization(parts: Partial<Authorization> & Pick<Authorization, 'from' | 'to'>): Authorization {
  return { value: 5_000n, validAfter: 0n, validBefore: nowSeconds() + 300n, nonce: newNonce(), ...parts }
}

/** Returns the arguments that both forms of the contract's functions start with. */
export const transferArguments = ({
  from,
  to,
  value,
  validAfter,
  validBefore,
  nonce,
}: Authorization): readonly unknown[] => [from, to, value, validAfter, validBefore, nonce]

/** Splits a signature into v, r and s. */
export function split(signature: Hex): readonly unknown[] {
  const { r, s, v } = parseSignature(signature)
  return [Number(v), r, s]
}

/** Transfers from the buyer to the payee on the chain, as a settlement does. */
export async function pay(sandbox: Sandbox, value: bigint): Promise<{ transaction: Hex; nonce: Hex }> {
  const usdc = createUsdcClient(sandbox.rpcUrl, sandbox.settleKey)
  const buyer = privateKeyToAccount(sandbox.buyer.privateKey)
  const message = authorization({ from: buyer.address, to: sandbox.payTo, value })
  const args = [...transferArguments(message), ...split(await usdc.sign(buyer, message))]
  const { transactionHash } = await usdc.write('transferWithAuthorization', args)
  return { transaction: transactionHash, nonce: message.nonce }
}
