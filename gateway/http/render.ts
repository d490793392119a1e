/** Renders Pug views to HTML. Views have texts and loops; handlers and `format` prepare the values. */
import { existsSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { LRUCache } from 'lru-cache'
import type { compileTemplate } from 'pug'
import type { Catalog } from '../plugin/catalog.ts'
import { draw, waterfall } from './draw-chart.ts'
import { format } from './view-formats.ts'

export type Render = (view: string, locals: Readonly<Record<string, unknown>>) => string

export interface RendererOptions {
  /** The gateway's own views, searched first. The layout is here. */
  readonly viewDir: string
  /** Folders of views that the plugins of the current edition bring along, searched next. */
  readonly pluginViewDirs?: () => readonly string[]
  /** The time of the file system, epoch milliseconds. */
  readonly now?: () => number
}

/** Pug is loaded with the first page: it takes a tenth of the gateway's start, and many never show a page. */
const pug = (): typeof import('pug') => createRequire(import.meta.url)('pug') as typeof import('pug')

const VIEW_NAME = /^[a-z0-9]+(?:[-/][a-z0-9]+)*$/

/**
 * Creates a function that renders views by name and throws if there is no such view. A view stays as it is for an
 * edition, recognised by the `catalog` in `locals`; a changed view appears with the next one. Every view also gets
 * `format`, `chart` and `navigation`.
 */
export function createRenderer({ viewDir, pluginViewDirs = () => [], now = Date.now }: RendererOptions): Render {
  const compiled = new WeakMap<object, Map<string, compileTemplate>>()

  function compile(view: string): compileTemplate {
    const viewDirs = [viewDir, ...pluginViewDirs()]
    const files = VIEW_NAME.test(view) ? viewDirs.map((folder) => join(folder, `${view}.pug`)) : []
    const file = files.find((path) => existsSync(path))
    if (file === undefined) throw new Error(`There is no view "${view}" in ${viewDirs.join(', ')}.`)
    return compileView(file, viewDir, now)
  }

  return (view, locals) => {
    const catalog = locals['catalog'] as Catalog | undefined
    const edition = catalog ?? compiled
    const templates = compiled.get(edition) ?? new Map<string, compileTemplate>()
    compiled.set(edition, templates)
    const template = templates.get(view) ?? compile(view)
    templates.set(view, template)
    return template({ navigation: catalog ? navigation(catalog) : [], ...locals, format, chart: { draw, waterfall } })
  }
}

/** A template of Pug lists the files that it includes and extends, which its types do not say. */
type Template = compileTemplate & { readonly dependencies: readonly string[] }

/** A compiled view, and what the file system said of its files when it was compiled. */
interface CompiledView {
  readonly template: Template
  readonly stamps: string
}

/** Compiled views by file and folder of the layout. To compile one takes a tenth of a second of a core. */
const compiledViews = new LRUCache<string, CompiledView>({ max: 500 })

/** Time stamps of files are no finer than this, also on old and remote file systems. */
const SETTLED_MS = 2_000

/** Compiles a view, unless it was compiled before and none of the files that it consists of has changed since. */
function compileView(file: string, basedir: string, now: () => number): compileTemplate {
  const key = `${basedir}\0${file}`
  const known = compiledViews.get(key)
  if (known && stampsOf([file, ...known.template.dependencies]) === known.stamps) return known.template
  const began = now()
  const template = pug().compileFile(file, { basedir, compileDebug: false }) as Template
  const files = [file, ...template.dependencies]
  // A later change of a file that is so new may leave its stamp as it is.
  const isSettled = files.every(
    (path) => (statSync(path, { throwIfNoEntry: false })?.ctimeMs ?? began) < began - SETTLED_MS,
  )
  if (isSettled) compiledViews.set(key, { template, stamps: stampsOf(files) })
  return template
}

function stampsOf(files: readonly string[]): string {
  const stamps = files.map((path) => {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false })
    return found && [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(':')
  })
  return stamps.join()
}

export interface NavigationItem {
  readonly href: string
  readonly label: string
}

/** Returns the pages for the menu: listed views with a path of one segment. "/terms-of-use" gets the label "Terms of use". */
export function navigation(catalog: Catalog): readonly NavigationItem[] {
  return [...catalog.operations.values()]
    .filter(({ view, method, listed, path }) => view !== null && method === 'GET' && listed && /^\/[a-z-]+$/.test(path))
    .map(({ path }) => ({ href: path, label: path.charAt(1).toUpperCase() + path.slice(2).replaceAll('-', ' ') }))
}
