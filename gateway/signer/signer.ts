/**
 * The signer: a process of its own that holds the private keys. It signs settlements that pay PAY_TO, access tokens,
 * receipts and attestations of products, and nothing else. The launcher starts it, or the operator as another user.
 */
import { chmodSync, lstatSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { type Config, ConfigError, readConfig } from '../config/config.ts'
import { processEnvironment } from '../config/environment.ts'
import { type Hex, type Network, NETWORKS, readNetworks } from '../config/networks.ts'
import { HELD_BY_SIGNER, SANDBOX } from '../config/settlement.ts'
import { createSigner, type LocalSigner } from '../methods/exact-evm/chain/transaction-signer.ts'
import { openLog } from '../observe/log.ts'
import type { Logger } from '../plugin/plugin.ts'
import { closeDataFolder } from '../stores/private-files.ts'
import { SignerError, type SignerKeys, type SignerLine, type SigningRequest } from '../stores/signer-client.ts'
import { openLocalKeys } from '../tokens/statement-signer.ts'
import { GasBound } from './gas-bound.ts'
import { removeSocket, type SignerReport, type SignerTask } from './start-signer.ts'
import { refusalOfAttestation, refusalOfStatement, type StatementRules } from './statement-policy.ts'
import { refusalOfTransaction, type TransactionRules } from './transaction-policy.ts'

/** Signs one request, or throws SignerError. */
export type Sign = (request: SigningRequest) => unknown

/** A connection that sends a longer line is closed. In characters. */
const MAX_LINE = 1_000_000

/**
 * Opens the keys of a configuration, and returns their public parts and the function that signs with them.
 *
 * @throws ConfigError if the configuration names a signer instead of keys
 * @throws DataError if TOKEN_KEYS is not a set of private Ed25519 keys
 */
export async function openSigner(config: Config, log: Logger): Promise<{ readonly keys: SignerKeys; sign: Sign }> {
  if (
    config.tokenKeys === HELD_BY_SIGNER ||
    config.networks.some(({ settleKeys }) => settleKeys.includes(HELD_BY_SIGNER))
  )
    throw new ConfigError(['SETTLE_KEY and TOKEN_KEYS of the signer must be the keys themselves.'])
  const statements = await openLocalKeys(config.tokenKeys, config.dataDir, config.secret)
  const isSandbox = config.network === SANDBOX
  const known = isSandbox ? [] : readNetworks(config.catalogDir)
  const networks = config.networks.map((settings) => {
    const network = known.find(({ name }) => name === settings.network) ?? NETWORKS['base-sepolia']
    return { settings, network }
  })
  const rules: StatementRules = {
    issuer: config.baseUrl,
    recipients: networks.map(({ settings, network: { caip2, asset } }) => ({
      caip2,
      asset,
      payTo: isSandbox ? null : settings.payTo,
    })),
    now: Date.now,
  }
  const accounts = new Map(
    networks.map(({ settings, network }) => [settings.network, accountOf(config, settings, network)]),
  )
  const keys: SignerKeys = {
    publicKeys: statements.publicKeys,
    offerKeys: statements.offerKeys,
    addresses: Object.fromEntries(
      [...accounts].map(([name, { signers }]) => [name, signers.map(({ address }) => address)]),
    ),
  }
  const refuse = (why: string, details: object): never => {
    log.error(details, `the signer refuses: ${why}`)
    throw new SignerError(why)
  }
  return {
    keys,
    sign(request) {
      if ('statement' in request) {
        const { type, statement } = request
        const why = refusalOfStatement(type, statement, rules)
        return why === null ? statements.sign(type, statement) : refuse(why, { type })
      }
      if ('attestation' in request) {
        const { attestation, product, serial } = request
        if (attestation === null) return statements.attestations.key(product, serial)
        const why = refusalOfAttestation(attestation)
        return why === null ? statements.attestations.sign(product, serial, attestation) : refuse(why, { product })
      }
      const { network, nth, transaction: fields } = request
      const account = accounts.get(network)
      const signer = account?.signers[nth]
      if (!account || !signer) return refuse('there is no such key', { network, nth })
      const transaction = {
        to: fields.to,
        data: fields.data,
        nonce: fields.nonce,
        gas: BigInt(fields.gas),
        maxFeePerGas: BigInt(fields.maxFeePerGas),
        maxPriorityFeePerGas: BigInt(fields.maxPriorityFeePerGas),
      }
      const details = { network, to: fields.to, nonce: fields.nonce, gas: fields.gas }
      const why = refusalOfTransaction(transaction, signer.address, account.rules)
      if (why !== null) return refuse(why, details)
      if (!account.bound.admit(signer.address, fields.nonce, transaction.gas))
        return refuse(`SIGNER_GAS_PER_HOUR (${config.signerGasPerHour}) is reached`, details)
      return signer.sign(transaction)
    },
  }
}

interface Account {
  /** One per worker. */
  readonly signers: readonly LocalSigner[]
  readonly rules: TransactionRules
  readonly bound: GasBound
}

function accountOf(config: Config, settings: Config['networks'][number], network: Network): Account {
  const { payTo, maxGasPrice, settleKeys } = settings
  return {
    signers: payTo === null ? [] : settleKeys.map((key) => createSigner(key as Hex, network.chainId)),
    rules: { asset: network.asset, payTo: payTo as Hex, factories: config.walletFactories, maxGasPrice },
    bound: new GasBound(BigInt(config.signerGasPerHour)),
  }
}

/**
 * Answers requests at a Unix socket. Resolves once it listens, and rejects if it cannot.
 *
 * @throws ConfigError if there is something else than a socket
 */
export async function serveSigner(path: string, keys: SignerKeys, sign: Sign, log: Logger): Promise<Server> {
  const server = createServer((socket) => answer(socket, keys, sign, log))
  if (process.platform !== 'win32') removeLeftOver(path)
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    // Until its mode is set, no other user may connect, whatever the umask.
    const umask = process.umask(0o077)
    server.listen(path, () => {
      // Also for the group, so that the gateway of another user may connect. The folder decides who gets here.
      if (process.platform !== 'win32') chmodSync(path, 0o660)
      resolve(server)
    })
    process.umask(umask)
  })
}

/** Removes the socket that a signer leaves behind which was killed. */
function removeLeftOver(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found && !found.isSocket())
    throw new ConfigError([`SIGNER_SOCKET: ${path} exists and is no socket. Name a path that is free.`])
  rmSync(path, { force: true })
}

function answer(socket: Socket, keys: SignerKeys, sign: Sign, log: Logger): void {
  const write = (line: SignerLine): boolean => socket.write(`${JSON.stringify(line)}\n`)
  let rest = ''
  write({ keys })
  socket.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() as string
    if (rest.length > MAX_LINE) return socket.destroy()
    // One write for all requests that came together.
    let answers = ''
    for (const line of lines) answers += `${JSON.stringify(answerTo(line, sign, log))}\n`
    if (answers !== '') socket.write(answers)
  })
  socket.on('error', () => socket.destroy())
}

function answerTo(line: string, sign: Sign, log: Logger): SignerLine {
  let id = 0
  try {
    const request = JSON.parse(line) as SigningRequest & { readonly id: number }
    id = request.id
    return { id, value: sign(request) }
  } catch (error) {
    if (error instanceof SignerError) return { id, refused: error.message }
    log.error({ err: error }, 'the signer could not sign')
    return { id, refused: 'the request is not valid' }
  }
}

/**
 * Runs the signer until the process that started it has ended. If the operator started it, it runs until a signal ends
 * it.
 * @throws ConfigError or DataError for keys that are not valid, if the operator started it; the launcher gets a report
 */
export async function runSigner(exit: (code: number) => never): Promise<void> {
  if (!process.send) {
    const environment = processEnvironment()
    const socket = environment['SIGNER_SOCKET']?.trim()
    if (!socket)
      throw new ConfigError(['SIGNER_SOCKET is missing. Name the Unix socket at which the gateway finds the signer.'])
    return open({ environment, socket })
  }
  // A terminal and systemd send these to all processes, and the gateway may still have something to sign.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  const report = (said: SignerReport, then: () => void): void => void process.send?.(said, undefined, undefined, then)
  process.once('message', (task: SignerTask) => {
    process.once('disconnect', () => {
      removeSocket(task.socket)
      exit(0)
    })
    open(task).then(
      () => report({ ready: true }, () => {}),
      (error: Error) => report({ failed: error.message, isConfig: error.name === 'ConfigError' }, () => exit(1)),
    )
  })
}

async function open({ environment, socket }: SignerTask): Promise<void> {
  const config = readConfig(environment)
  const log = openLog(config).child({ process: 'signer' })
  // One that the launcher has started shares its folder with the gateway, which closes it.
  if (!process.send) closeDataFolder(config, log)
  const { keys, sign } = await openSigner(config, log)
  await serveSigner(socket, keys, sign, log)
}
