/**
 * `npm run compile`: compiles the sandbox contracts gateway/sandbox/<name>.sol to <name>.json. Run it after you change a
 * contract.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readFlags } from './flags.ts'

export interface Artefact {
  readonly contract: string
  readonly compiler: string
  readonly abi: readonly unknown[]
  /** Deployed code, as eth_getCode returns it. */
  readonly runtime: `0x${string}`
}

interface Compiled {
  readonly errors?: readonly { readonly severity: string; readonly formattedMessage: string }[]
  readonly contracts?: Readonly<Record<string, Readonly<Record<string, Contract>>>>
}
interface Contract {
  readonly abi: readonly unknown[]
  readonly evm: { readonly deployedBytecode: { readonly object: string } }
}

const folder = resolve(import.meta.dirname, '..', 'gateway', 'sandbox')
const CONTRACTS = { usdc: 'Usdc', multicall3: 'Multicall3' }

/** Compiles one contract without metadata, so that the bytes depend on the code alone. Throws if solc reports errors. */
export function compile(contract: string, source: string): Artefact {
  const solc = createRequire(import.meta.url)('solc') as { compile(input: string): string; version(): string }
  const input = {
    language: 'Solidity',
    sources: { source: { content: source } },
    settings: {
      evmVersion: 'cancun',
      optimizer: { enabled: true, runs: 200 },
      metadata: { appendCBOR: false, bytecodeHash: 'none' },
      outputSelection: { source: { [contract]: ['abi', 'evm.deployedBytecode.object'] } },
    },
  }
  const { errors = [], contracts } = JSON.parse(solc.compile(JSON.stringify(input))) as Compiled
  const compiled = contracts?.['source']?.[contract]
  if (errors.length > 0 || !compiled)
    throw new Error(errors.map(({ formattedMessage }) => formattedMessage).join('\n') || `No contract ${contract}.`)
  const runtime: `0x${string}` = `0x${compiled.evm.deployedBytecode.object}`
  return { contract, compiler: solc.version().replace(/\+.*/, ''), abi: compiled.abi, runtime }
}

/** Returns the artefact of gateway/sandbox/<name>.sol as text, exactly as committed. */
export function artefactText(name: keyof typeof CONTRACTS): string {
  const artefact = compile(CONTRACTS[name], readFileSync(join(folder, `${name}.sol`), 'utf8'))
  return `${JSON.stringify(artefact, null, 1)}\n`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  readFlags('Usage: npm run compile', {})
  for (const name of Object.keys(CONTRACTS) as (keyof typeof CONTRACTS)[]) {
    writeFileSync(join(folder, `${name}.json`), artefactText(name))
    process.stdout.write(`gateway/sandbox/${name}.json\n`)
  }
}
