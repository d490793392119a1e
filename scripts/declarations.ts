/**
 * The last step of `npm pack`: writes the types of `tollgate/plugin`, `tollgate/testing` and `tollgate/client` into `dist`,
 * beside their code, with the types that they refer to and no others.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const ENTRIES = ['gateway/client/buyer', 'gateway/plugin/plugin', 'gateway/testing/testing']
const SPECIFIER = /(from |import\()(['"])(\.[^'"]+)\.ts\2/g

/** Writes the declarations of all modules that the entries import. */
function declareAll(folder: string): void {
  const project = join(folder, 'tsconfig.json')
  const compilerOptions = { noEmit: false, declaration: true, emitDeclarationOnly: true, outDir: folder, rootDir: root }
  const files = ENTRIES.map((entry) => join(root, `${entry}.ts`))
  writeFileSync(project, JSON.stringify({ extends: join(root, 'tsconfig.json'), compilerOptions, files, include: [] }))
  const { status } = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', project], {
    stdio: ['ignore', 2, 2],
  })
  if (status !== 0) throw new Error('The types could not be written: correct the errors above.')
}

/** Copies the declarations that the entries refer to. Imports name the code, as they must in a package. */
function copyUsed(folder: string): number {
  const used = new Set(ENTRIES.map((entry) => join(folder, `${entry}.d.ts`)))
  for (const file of used) {
    const text = readFileSync(file, 'utf8')
    for (const [, , , path = ''] of text.matchAll(SPECIFIER)) used.add(join(dirname(file), `${path}.d.ts`))
    const target = join(root, 'dist', relative(folder, file))
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, text.replace(SPECIFIER, '$1$2$3.js$2'))
  }
  return used.size
}

const folder = mkdtempSync(join(root, 'dist', 'declarations-'))
try {
  declareAll(folder)
  process.stderr.write(`[types] ${copyUsed(folder)} files\n`)
} finally {
  rmSync(folder, { recursive: true })
}
