/** Tests of the signer at its socket: what it signs, what it refuses, and what happens when it is gone. */
import type { Server } from 'node:net'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { generatePrivateKey, privateKeyToAddress, publicKeyToAddress } from 'viem/accounts'
import { parseTransaction, recoverTransactionAddress, verifyMessage } from 'viem'
import { readConfig } from '../../../gateway/config/config.ts'
import { NETWORKS, type Hex } from '../../../gateway/config/networks.ts'
import { createRemoteSigner } from '../../../gateway/methods/exact-evm/chain/remote-signer.ts'
import { settleData } from '../../../gateway/methods/exact-evm/eip3009.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { openSigner, serveSigner } from '../../../gateway/signer/signer.ts'
import { connectSigner, type SignerClient, SignerError } from '../../../gateway/stores/signer-client.ts'
import { createTokens } from '../../../gateway/tokens/access-tokens.ts'
import { createKey } from '../../../gateway/tokens/key-set.ts'

const ISSUER = 'https://gate.test'
const PAY_TO: Hex = '0x00000000000000000000000000000000000000A1'
const DIGEST = `sha256:${'0'.repeat(64)}`
const log = createLog('silent')

/** The message of what a promise is rejected with. */
async function refusalOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'it was signed',
    (error: Error) => `${error.name}: ${error.message}`,
  )
}

describe('the signer', () => {
  const settleKeys = [generatePrivateKey(), generatePrivateKey()]
  let folder: string
  let path: string
  let server: Server
  let client: SignerClient
  let tokenKeys: string

  const environment = (): Record<string, string> => ({
    NETWORK: 'base',
    PAY_TO,
    SETTLE_RPC_URL: 'http://127.0.0.1:9/',
    SETTLE_KEY: settleKeys.join(' '),
    TOKEN_KEYS: tokenKeys,
    BASE_URL: ISSUER,
    DATA_DIR: folder,
    DATA_MODE: 'online',
    SIGNER_GAS_PER_HOUR: '1000000',
  })
  const serve = async (at = path): Promise<Server> => {
    const { keys, sign } = await openSigner(readConfig(environment()), log)
    return serveSigner(at, keys, sign, log)
  }
  const stop = async (): Promise<void> => {
    // Also ends the connections that are open.
    for (const socket of sockets) socket.destroy()
    sockets.clear()
    await new Promise((done) => server.close(done))
  }
  const sockets = new Set<{ destroy(): void }>()
  const watch = (): void => void server.on('connection', (socket) => sockets.add(socket))

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-signer-test-'))
    path = join(folder, 'socket')
    tokenKeys = JSON.stringify({ keys: [await createKey(), await createKey()] })
    server = await serve()
    watch()
    client = await connectSigner(path, log)
    // The first connection came before it was watched for.
    client.close()
    client = await connectSigner(path, log)
  })
  after(async () => {
    client.close()
    await stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const transfer = {
    from: '0x00000000000000000000000000000000000000C3',
    to: PAY_TO,
    value: 5_000n,
    validAfter: 0n,
    validBefore: 2_000_000_000n,
    nonce: `0x${'1'.repeat(64)}`,
    signature: `0x${'2'.repeat(128)}1b`,
  } as const
  const transaction = {
    to: NETWORKS['base'].asset,
    data: settleData(transfer),
    gas: 200_000n,
    nonce: 7,
    maxFeePerGas: 1_000n,
    maxPriorityFeePerGas: 10n,
  }

  it('listens at a socket that only its user and group can open', () => {
    expect(statSync(path).mode & 0o777).to.equal(0o660)
  })

  it('lets no other user connect before the mode of its socket is set, under umask 0000', async () => {
    const { keys, sign } = await openSigner(readConfig(environment()), log)
    const other = join(folder, 'other')
    const umask = process.umask(0)
    const listening = serveSigner(other, keys, sign, log)
    const { mode } = statSync(other)
    expect(process.umask(umask)).to.equal(0)
    const opened = await listening
    await new Promise((resolve) => opened.close(resolve))
    expect(mode & 0o077).to.equal(0)
  })

  it('takes the place of a socket that was left behind, and never that of a file', async () => {
    const file = join(folder, 'signer.env')
    writeFileSync(file, 'SETTLE_KEY=mine')
    const refusal = await serve(file).catch((error: Error) => error.message)
    expect(refusal).to.contain(`${file} exists and is no socket`)
    expect(readFileSync(file, 'utf8')).to.equal('SETTLE_KEY=mine')
  })

  it('signs settlements with the key of each worker, for its chain only', async () => {
    for (const [nth, key] of settleKeys.entries()) {
      const signer = createRemoteSigner(client, 'base', nth)
      expect(signer.address).to.equal(privateKeyToAddress(key))
      const { raw } = await signer.sign(transaction)
      expect(await recoverTransactionAddress({ serializedTransaction: raw as `0x02${string}` })).to.equal(
        signer.address,
      )
      const { chainId, nonce, value, data } = parseTransaction(raw)
      expect({ chainId, nonce, value, data }).to.deep.equal({
        chainId: 8453,
        nonce: 7,
        value: undefined,
        data: transaction.data,
      })
    }
  })

  it('refuses a transfer to somebody else, a key it does not have, and nonsense, as transactions that were not sent', async () => {
    const signer = createRemoteSigner(client, 'base', 0)
    const data = settleData({ ...transfer, to: '0x00000000000000000000000000000000000000D4' })
    expect(await refusalOf(Promise.resolve(signer.sign({ ...transaction, data })))).to.equal(
      'RpcError: The signer refuses: it does not transfer an authorised payment to PAY_TO',
    )
    expect(() => createRemoteSigner(client, 'base', 2)).to.throw('has no key number 3 for base')
    const fields = { ...transaction, gas: '1', maxFeePerGas: '1', maxPriorityFeePerGas: '1' }
    expect(await refusalOf(client.signTransaction('base', 2, fields))).to.contain('there is no such key')
    expect(await refusalOf(client.signTransaction('base', 0, { ...fields, gas: 'much' }))).to.contain('not valid')
  })

  it('stops at SIGNER_GAS_PER_HOUR', async () => {
    const signer = createRemoteSigner(client, 'base', 0)
    expect(signer.obstacle?.()).to.equal(null)
    const results: string[] = []
    for (let nonce = 100; nonce < 106; nonce++)
      results.push(await refusalOf(Promise.resolve(signer.sign({ ...transaction, nonce }))))
    // Two transactions of 200,000 were signed before.
    expect(results.map((result) => result === 'it was signed')).to.deep.equal([true, true, true, false, false, false])
    expect(results.at(-1)).to.contain('SIGNER_GAS_PER_HOUR (1000000) is reached')
    expect(signer.obstacle?.(), 'what /health says').to.equal('SIGNER_GAS_PER_HOUR (1000000) is reached')
  })

  it('signs tokens and receipts as the gateway itself would', async () => {
    const { publicKeys, offerKeys } = client.keys
    const signer = { publicKeys, offerKeys, sign: client.signStatement.bind(client) }
    const options = { dataDir: null, issuer: ISSUER, now: () => new Date() }
    const remote = await createTokens({ ...options, keys: null, signer })
    const local = await createTokens({ ...options, keys: tokenKeys })
    expect(remote.jwks()).to.deep.equal(local.jwks())
    expect(JSON.stringify(publicKeys)).not.to.contain('"d"')
    const grant = { subject: '0xb2', plan: 'day', tier: 'live', durationSeconds: 60, id: '1', issuedAt: new Date() }
    const { token } = await remote.issue(grant)
    expect(token).to.equal((await local.issue(grant)).token)
    expect((await local.verify(token)).plan).to.equal('day')
    const offer = { version: 1 }
    expect(await local.read('x402-offer', remote.signOffer(offer))).to.deep.equal(offer)
    expect(await local.verify(remote.signOffer(offer)).catch((error: Error) => error.name)).to.equal('ServiceError')
  })

  const receipt = {
    version: 1,
    network: NETWORKS['base'].caip2,
    resourceUrl: `${ISSUER}/v1/x`,
    payer: '0xb2',
    issuedAt: 1,
    transaction: '0x1',
    scheme: 'exact',
    asset: NETWORKS['base'].asset,
    payTo: PAY_TO,
    amount: '5000',
    nonce: '0x2',
    requestDigest: DIGEST,
    responseDigest: DIGEST,
  }
  const token = () => {
    const iat = Math.floor(Date.now() / 1000)
    return { iss: ISSUER, aud: ISSUER, sub: '0xb2', jti: '1', plan: 'day', tier: 'live', iat, exp: iat + 60 }
  }

  it('signs no other statements: offers, other types, fields or services', async () => {
    const { responseDigest: _, ...streamed } = receipt
    for (const right of [receipt, streamed])
      expect(await refusalOf(client.signStatement('x402-receipt', right))).to.equal('it was signed')
    expect(await refusalOf(client.signStatement('JWT', token()))).to.equal('it was signed')
    const wrong: readonly (readonly [string, object])[] = [
      ['x402-offer', { version: 1 }],
      ['jwt', token()],
      ['JWT', receipt],
      ['JWT', { ...token(), aud: 'https://other.test' }],
      ['JWT', { ...token(), admin: true }],
      ['JWT', { ...token(), constructor: 'admin' }],
      ['JWT', { ...token(), exp: 0 }],
      ['JWT', { ...token(), iat: token().iat + 3_600, exp: token().iat + 7_200 }],
      ['x402-receipt', token()],
      ['x402-receipt', { ...receipt, payTo: '0x00000000000000000000000000000000000000D4' }],
      ['x402-receipt', { ...receipt, network: 'eip155:1' }],
      ['x402-receipt', { ...receipt, amount: '-1' }],
      ['x402-receipt', { ...receipt, more: 1 }],
      ['x402-receipt', { ...receipt, toString: 1 }],
      ['x402-receipt', { ...receipt, requestDigest: 'x' }],
    ]
    for (const [type, statement] of wrong)
      expect(await refusalOf(client.signStatement(type, { ...statement })), JSON.stringify(statement)).to.match(
        /^SignerError: The signer refuses: /,
      )
  })

  it('signs what products state if it expires within a day, with a key for each product and serial number', async () => {
    const stated = (expires: string): string =>
      JSON.stringify({ decision: 'allow', expires_at: expires, issued_at: '2026-11-23T10:00:00.000Z' })
    const text = stated('2026-11-23T10:01:00.000Z')
    const { address, publicKey } = await client.attestationKey('gold', 1)
    const signature = await client.signAttestation('gold', 1, text)
    expect(await verifyMessage({ address, message: text, signature })).to.equal(true)
    expect(publicKeyToAddress(publicKey)).to.equal(address)
    const keys = await Promise.all([client.attestationKey('gold', 2), client.attestationKey('tin', 1)])
    expect(new Set([address, ...keys.map((key) => key.address), ...settleKeys.map(privateKeyToAddress)]).size).to.equal(
      5,
    )
    const wrong = ['', 'text', '[]', '{}', stated('2026-11-25T10:00:00.000Z'), stated('2026-11-23T09:00:00.000Z')]
    for (const each of [...wrong, stated('never')])
      expect(await refusalOf(client.signAttestation('gold', 1, each)), each).to.match(
        /^SignerError: The signer refuses: /,
      )
  })

  it('answers each of many requests at once with its own signature', async () => {
    const tokens = Array.from({ length: 500 }, (_, at) => ({ ...token(), jti: String(at) }))
    const signed = await Promise.all(tokens.map((each) => client.signStatement('JWT', each)))
    const ids = signed.map((jws) => (JSON.parse(Buffer.from(jws.split('.')[1] as string, 'base64url').toString()) as { jti: string }).jti) // prettier-ignore
    expect(ids).to.deep.equal(tokens.map(({ jti }) => jti))
  })

  it('is asked again after it was started again, and rejects what was under way', async () => {
    const underWay = client.signStatement('JWT', token())
    await stop()
    expect(await refusalOf(underWay)).to.match(/SignerError|it was signed/)
    const later = client.signStatement('JWT', token())
    server = await serve()
    watch()
    expect(await refusalOf(later)).to.equal('it was signed')
    expect(await refusalOf(client.signStatement('JWT', token()))).to.equal('it was signed')
  })

  it('is said to be missing if none answers', async () => {
    const error = await connectSigner(join(folder, 'nobody'), log, 50).catch((reason: unknown) => reason)
    expect(error).to.be.instanceOf(SignerError)
  })
})
