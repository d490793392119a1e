import { expect } from 'chai'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { privateKeyToAddress } from 'viem/accounts'
import { anvilBinary } from '../../../gateway/sandbox/anvil.ts'
import { MULTICALL3 } from '../../../gateway/methods/exact-evm/multicall.ts'
import { isAlive } from '../../../gateway/sandbox/processes.ts'
import { openSandbox, type Sandbox } from '../../../gateway/sandbox/sandbox.ts'
import { createUsdcClient, pay, quiet, ROOT, skipWithoutAnvil, temporaryFolder, TOKEN } from './usdc-client.ts'
import { compiled } from '../../support/compiled.ts'
import { until } from '../../support/until.ts'

const USDC = 1_000_000n

/** Kills the whole process group, as closing a terminal does. */
async function killGroup(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once('exit', resolve))
  process.kill(-(child.pid as number), 'SIGKILL')
  await ended
}

describe('the sandbox', () => {
  let folder: ReturnType<typeof temporaryFolder>
  let opened: Sandbox[] = []
  const children: ChildProcess[] = []

  const open = async (blockSeconds = 0): Promise<Sandbox> => {
    const sandbox = await openSandbox({ dataDir: folder.path, blockSeconds, log: quiet })
    opened.push(sandbox)
    return sandbox
  }
  /** Opens the sandbox in another process with its own process group. */
  const openInAnotherProcess = async (): Promise<{ process: ChildProcess; pid: number; rpcUrl: string }> => {
    const program = await compiled('test/gateway/sandbox/sandbox-process.ts')
    const child = spawn(process.execPath, [program, folder.path], {
      cwd: ROOT,
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    children.push(child)
    let line = ''
    for await (const chunk of child.stdout) if ((line += chunk).includes('\n')) break
    return { process: child, ...(JSON.parse(line) as { pid: number; rpcUrl: string }) }
  }
  const record = (): { pid: number | null; port: number } =>
    JSON.parse(readFileSync(join(folder.path, 'chain', 'process.json'), 'utf8')) as { pid: number | null; port: number }
  /** Counts the chains that listen on the port of this folder. */
  const chains = (): number =>
    execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
      .split('\n')
      .filter((line) => line.includes('anvil') && line.includes(`--port ${record().port} `)).length

  before(function () {
    skipWithoutAnvil(this)
  })
  beforeEach(() => {
    folder = temporaryFolder()
    opened = []
  })
  afterEach(async () => {
    for (const child of children) if (child.exitCode === null && child.signalCode === null) await killGroup(child)
    // Opening and closing the sandbox also stops a chain that lost its gateway.
    if (opened.length === 0) await open()
    for (const sandbox of opened) await sandbox.close()
    expect(chains()).to.equal(0)
    folder.remove()
  })

  it('has USDC and Multicall3 at their Base Sepolia addresses, gas for settlements, and a buyer with 10,000 USDC', async () => {
    const sandbox = await open()
    const { client, balance } = createUsdcClient(sandbox.rpcUrl)
    expect(await client.getChainId()).to.equal(84532)
    expect(await client.getCode({ address: TOKEN })).to.have.length.above(1000)
    expect(await client.getCode({ address: MULTICALL3 })).to.have.length.above(1000)
    expect(await client.getBalance({ address: privateKeyToAddress(sandbox.settleKey) })).to.equal(1_000n * 10n ** 18n)
    expect(await balance(sandbox.buyer.address)).to.equal(10_000n * USDC)
    expect(await balance(sandbox.payTo)).to.equal(0n)
    expect(privateKeyToAddress(sandbox.buyer.privateKey)).to.equal(sandbox.buyer.address)
  })

  it('describes itself in a file that only its owner can read', async () => {
    const sandbox = await open()
    await sandbox.describe('http://127.0.0.1:4021')
    const file = join(folder.path, 'sandbox.json')
    expect(JSON.parse(readFileSync(file, 'utf8'))).to.deep.include({
      base_url: 'http://127.0.0.1:4021',
      rpc_url: sandbox.rpcUrl,
      chain_id: 84532,
      network: 'base-sepolia',
      asset: TOKEN,
      pay_to: sandbox.payTo,
      buyer: { address: sandbox.buyer.address, private_key: sandbox.buyer.privateKey },
    })
    for (const secret of [file, join(folder.path, 'chain', 'keys.json'), join(folder.path, 'chain', 'process.json')])
      expect(statSync(secret).mode & 0o777, secret).to.equal(0o600)
  })

  it('keeps its address, buyer, balances, used authorizations, receipts and logs across a clean stop', async () => {
    const first = await open()
    const { transaction, nonce } = await pay(first, 5n * USDC)
    await first.close()
    expect(record().pid).to.equal(null)
    expect(await isAlive(first.pid)).to.equal(false)

    const second = await open()
    const { client, balance, isUsed } = createUsdcClient(second.rpcUrl)
    expect([second.rpcUrl, second.payTo, second.buyer]).to.deep.equal([first.rpcUrl, first.payTo, first.buyer])
    expect(await balance(second.payTo)).to.equal(5n * USDC)
    expect(await balance(second.buyer.address)).to.equal(9_995n * USDC)
    expect(await isUsed(second.buyer.address, nonce)).to.equal(true)
    expect((await client.getTransactionReceipt({ hash: transaction })).logs).to.have.length(2)
    const logs = await client.getLogs({ address: TOKEN, fromBlock: 0n })
    expect(logs.map(({ transactionHash }) => transactionHash)).to.include(transaction)
    await pay(second, 1n * USDC)
    expect(await balance(second.payTo)).to.equal(6n * USDC)
  })

  it('sets the clock of the chain to the present after a pause', async () => {
    const first = await open()
    const { client } = createUsdcClient(first.rpcUrl)
    const before = (await client.getBlock()).timestamp
    await first.close()
    // Makes the saved state an hour old.
    const state = join(folder.path, 'chain', 'state.json')
    const isRecent = (time: bigint): boolean => time > before - 60n && time < before + 60n
    const aged = readFileSync(state, 'utf8').replaceAll(/"0x[0-9a-f]{8}"/g, (quoted) => {
      const time = BigInt(JSON.parse(quoted) as string)
      return isRecent(time) ? `"0x${(time - 3_600n).toString(16)}"` : quoted
    })
    expect(aged === readFileSync(state, 'utf8')).to.equal(false)
    writeFileSync(state, aged)
    const second = await open()
    const latest = (await createUsdcClient(second.rpcUrl).client.getBlock()).timestamp
    expect(Number(latest)).to.be.closeTo(Date.now() / 1000, 10)
  })

  it('tops the buyer up only below 1,000 USDC', async () => {
    const first = await open()
    await pay(first, 9_000n * USDC)
    await first.close()
    const second = await open()
    expect(await createUsdcClient(second.rpcUrl).balance(second.buyer.address)).to.equal(1_000n * USDC)
    await pay(second, 1n)
    await second.close()
    const third = await open()
    expect(await createUsdcClient(third.rpcUrl).balance(third.buyer.address)).to.equal(10_000n * USDC)
    expect(await createUsdcClient(third.rpcUrl).balance(third.payTo)).to.equal(9_000n * USDC + 1n)
  })

  it('adopts the chain that a killed gateway left behind', async () => {
    const abandoned = await openInAnotherProcess()
    await killGroup(abandoned.process)
    expect(await isAlive(abandoned.pid)).to.equal(true)
    // This block is mined while no gateway runs, so it is in no saved state.
    await createUsdcClient(abandoned.rpcUrl).client.request({ method: 'evm_mine' as never, params: [] as never })
    const height = await createUsdcClient(abandoned.rpcUrl).client.getBlockNumber()
    const sandbox = await open()
    expect(sandbox.pid).to.equal(abandoned.pid)
    expect(sandbox.rpcUrl).to.equal(abandoned.rpcUrl)
    expect(await createUsdcClient(sandbox.rpcUrl).client.getBlockNumber()).to.be.at.least(Number(height))
    expect(chains()).to.equal(1)
    await sandbox.close()
    expect(await isAlive(abandoned.pid)).to.equal(false)
  })

  it('ends a chain whose gateway was killed before it had identified the chain', async () => {
    const abandoned = await openInAnotherProcess()
    await killGroup(abandoned.process)
    const file = join(folder.path, 'chain', 'process.json')
    writeFileSync(file, JSON.stringify({ ...record(), genesis: null }))
    const sandbox = await open()
    expect(sandbox.pid).not.to.equal(abandoned.pid)
    expect(sandbox.rpcUrl).to.equal(abandoned.rpcUrl)
    expect(await isAlive(abandoned.pid)).to.equal(false)
  })

  it('continues from the last saved state if gateway and chain were both killed', async () => {
    const abandoned = await openInAnotherProcess()
    const state = join(folder.path, 'chain', 'state.json')
    await until(() => existsSync(state))
    await killGroup(abandoned.process)
    process.kill(abandoned.pid, 'SIGKILL')
    await until(async () => !(await isAlive(abandoned.pid)))
    const sandbox = await open()
    expect(sandbox.pid).not.to.equal(abandoned.pid)
    const { client, balance } = createUsdcClient(sandbox.rpcUrl)
    expect(await balance(sandbox.buyer.address)).to.equal(10_000n * USDC)
    const minted = await client.getLogs({ address: TOKEN, fromBlock: 0n })
    expect(minted, 'the buyer is not funded again').to.have.length(1)
  })

  it('restarts the chain from its saved state if it dies alone', async () => {
    const sandbox = await open()
    await pay(sandbox, 2n * USDC)
    const state = join(folder.path, 'chain', 'state.json')
    const height = (await createUsdcClient(sandbox.rpcUrl).client.getBlockNumber()).toString(16)
    await until(() => existsSync(state) && readFileSync(state, 'utf8').includes(`"number":"0x${height}"`))
    const killedPid = sandbox.pid
    process.kill(killedPid, 'SIGKILL')
    await until(() => sandbox.pid !== killedPid)
    expect(await createUsdcClient(sandbox.rpcUrl).balance(sandbox.payTo)).to.equal(2n * USDC)
    expect(chains()).to.equal(1)
  })

  it('shares one chain between two gateways, each with its own gas key, until the last one leaves', async () => {
    const [first, second] = await Promise.all([open(), open()])
    expect(first.pid).to.equal(second.pid)
    expect(first.settleKey).not.to.equal(second.settleKey)
    await first.close()
    expect(await createUsdcClient(second.rpcUrl).balance(second.buyer.address)).to.equal(10_000n * USDC)
    await second.close()
    expect(await isAlive(second.pid)).to.equal(false)
  })

  it('tops the buyer up once for gateways that join it while their transactions wait for a block', async () => {
    const first = await open(1)
    await pay(first, 9_500n * USDC)
    const { balance } = createUsdcClient(first.rpcUrl)
    await until(async () => (await balance(first.buyer.address)) === 500n * USDC)
    const others = await Promise.all(Array.from({ length: 4 }, () => open(1)))
    expect(await balance(first.buyer.address)).to.equal(10_000n * USDC)
    for (const sandbox of [first, ...others]) await sandbox.close()
  })

  it('leaves another program alone that has reused the old process id', async () => {
    const first = await open()
    await first.close()
    const program = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore', detached: true })
    children.push(program)
    const file = join(folder.path, 'chain', 'process.json')
    writeFileSync(file, JSON.stringify({ ...record(), pid: program.pid }))
    const second = await open()
    expect(second.pid).not.to.equal(program.pid)
    await second.close()
    expect(await isAlive(program.pid as number)).to.equal(true)
  })

  it('mines blocks at an interval if configured', async () => {
    const sandbox = await open(1)
    const { client } = createUsdcClient(sandbox.rpcUrl)
    const height = await client.getBlockNumber({ cacheTime: 0 })
    await until(async () => (await client.getBlockNumber({ cacheTime: 0 })) > height)
    expect((await client.getBlockNumber({ cacheTime: 0 })) > height).to.equal(true)
  })

  it('explains what to do if the saved state cannot be read or the platform has no chain program', async () => {
    const first = await open()
    await first.close()
    const state = join(folder.path, 'chain', 'state.json')
    const savedState = readFileSync(state)
    writeFileSync(state, '{')
    const failure = await open().then(
      () => 'opened',
      (error: Error) => error.message,
    )
    expect(failure).to.match(/did not start: .*remove .*chain to begin a new chain/s)
    writeFileSync(state, savedState)
    expect(() => anvilBinary('sunos', 'sparc')).to.throw(/@foundry-rs\/anvil-sunos-sparc.*npm ci --include=optional/)
  })
})
