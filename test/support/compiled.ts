/**
 * Programs of tests that run as processes. Compiled to one file each, they start in a quarter of the time of their
 * sources, of which tsx would read hundreds.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'
import { BUNDLE } from '../../scripts/bundle.ts'

const root = resolve(import.meta.dirname, '../..')
const dist = join(root, 'dist')
const programs = new Map<string, Promise<string>>()

/** Modules that the build has a file for are those of the build, as in the gateway that operators run. */
const builtGateway: Plugin = {
  name: 'the built gateway',
  setup({ onResolve }) {
    onResolve({ filter: /^\.{1,2}\/.*\.ts$/ }, ({ path, resolveDir }) => {
      const built = join(dist, relative(root, join(resolveDir, path)).replace(/\.ts$/, '.js'))
      return existsSync(built) ? { path: built, external: true } : undefined
    })
  },
}

/** Modules find their files where their sources are. */
const ownPlace: Plugin = {
  name: 'the place of a source',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const place = { dirname: dirname(path), filename: path, url: pathToFileURL(path).href }
      const contents = readFileSync(path, 'utf8').replace(/\bimport\.meta\.(dirname|filename|url)\b/g, (_, name) =>
        JSON.stringify(place[name as keyof typeof place]),
      )
      return { contents, loader: 'ts' }
    })
  },
}

/** Compiles a program, given by its path below the project, once per process. Returns the file to run. */
export function compiled(file: string): Promise<string> {
  const known = programs.get(file)
  if (known) return known
  const made = compile(file)
  programs.set(file, made)
  return made
}

async function compile(file: string): Promise<string> {
  // As deep below `dist` as the gateway, which finds the project by its own place.
  const program = join(dist, 'tests/programs', `${basename(file, '.ts')}.js`)
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [file],
    outfile: program,
    write: false,
    ...BUNDLE,
    plugins: [builtGateway, ownPlace],
  })
  mkdirSync(dirname(program), { recursive: true })
  writeFileSync(`${program}.${process.pid}`, outputFiles[0]?.contents ?? '')
  renameSync(`${program}.${process.pid}`, program)
  return program
}
