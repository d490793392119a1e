/**
 * The views that this process has compiled. An edition whose views have not changed takes them over, as does another gateway
 * of the process: compiling a page takes tens of milliseconds, and showing it takes less than one.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, relative } from 'node:path'
import { LRUCache } from 'lru-cache'
import type { compileTemplate, Options } from 'pug'
import { builtTemplate, digestOf } from './built-templates.ts'

interface KnownTemplate {
  readonly template: compileTemplate
  /** The text of each file that it was compiled from: its own, its layout and what they include. */
  readonly texts: ReadonlyMap<string, string>
}

/** More than the views of any catalog of ours, and few enough that those of old plugins do not pile up. */
const MAX_TEMPLATES = 100

const known = new LRUCache<string, KnownTemplate>({ max: MAX_TEMPLATES })

/** Pug is loaded with the first page that was not built: it takes a tenth of the gateway's start. */
const pug = (): typeof import('pug') => createRequire(import.meta.url)('pug') as typeof import('pug')

/**
 * Compiles the view in a file, unless this process or the build has compiled the same texts before. Paths in the view that
 * begin with a slash are below `basedir`. Throws if the view has an error.
 * @param builtIn the folder with what a build has made; that of this gateway if absent
 */
export function templateOf(file: string, basedir: string, builtIn?: string): compileTemplate {
  const key = `${basedir}\0${file}`
  const before = known.get(key)
  if (before && [...before.texts].every(([path, text]) => textOf(path) === text)) return before.template
  const compiled = fromBuild(file, basedir, builtIn) ?? compile(file, basedir)
  known.set(key, compiled)
  return compiled.template
}

/** The template that the build has made of a view; null if it made none, or one of other texts. */
function fromBuild(file: string, basedir: string, builtIn?: string): KnownTemplate | null {
  const built = builtTemplate(relative(basedir, file), builtIn)
  if (built === null) return null
  const texts = new Map<string, string>()
  for (const [path, digest] of Object.entries(built.digests)) {
    const text = textOf(join(basedir, path))
    if (text === null || digestOf(text) !== digest) return null
    texts.set(join(basedir, path), text)
  }
  return { template: built.template, texts }
}

function compile(file: string, basedir: string): KnownTemplate {
  const texts = new Map<string, string>()
  const read = (path: string): string => {
    const text = readFileSync(path, 'utf8')
    texts.set(path, text)
    return text
  }
  // The types do not declare plugins of Pug. This one reads the files that a view extends and includes.
  const options: Options & { readonly plugins: readonly object[] } = {
    filename: file,
    basedir,
    compileDebug: false,
    plugins: [{ read }],
  }
  return { template: pug().compile(read(file), options), texts }
}

/** The text of a file; null if it cannot be read. */
function textOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
