/** The views of an edition: the Pug files of the shop, of the gateway and of plugins that pages are rendered with. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, posix, relative, sep } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { compileTemplate } from 'pug'
import type { Catalog, Service } from '../plugin/catalog.ts'
import { type Issue, pointerOf } from '../validation/issue.ts'

/** Pug is loaded with the first page: it takes a tenth of the gateway's start. */
const pug = (): typeof import('pug') => createRequire(import.meta.url)('pug') as typeof import('pug')

const VIEW_NAME = /^[a-z0-9]+(?:[-/][a-z0-9]+)*$/

/** Views that no operation names: those of refusals. */
const REFUSALS = ['error', 'payment']

export interface ViewsOptions {
  /** The folders that share their files: that of the shop, if it has one, then that of the gateway. */
  readonly viewDirs: readonly string[]
  /** Folders of views that plugins bring along, searched last. */
  readonly pluginViewDirs?: readonly string[]
}

/** The views as they were when the edition was built. A view is compiled once. */
export class Views {
  readonly #shared: readonly string[]
  readonly #folders: readonly string[]
  /** Equal for equal files. */
  readonly #stamp: string
  readonly #templates = new Map<string, compileTemplate>()
  /** What is wrong with views, by name. */
  readonly #faults = new Map<string, string>()

  constructor({ viewDirs, pluginViewDirs = [] }: ViewsOptions) {
    this.#shared = viewDirs
    this.#folders = [...viewDirs, ...pluginViewDirs]
    this.#stamp = this.#folders.map(stampOf).join('\n')
  }

  /**
   * Returns the views of the next edition: the same if no file has changed. A view with an error stays as it was before, or
   * is that of the gateway. The views of the pages of `catalog` are compiled at once if the shop has views of its own, if a
   * file has changed, or if `isChecking`.
   */
  static async next(options: ViewsOptions, catalog: Catalog, previous?: Views, isChecking = false): Promise<Views> {
    const read = new Views(options)
    const isSame = previous !== undefined && previous.#stamp === read.#stamp
    const views = isSame ? previous : read
    const [own = '', ...others] = options.viewDirs
    const isOwn = others.length > 0 && existsSync(own)
    if (!isChecking && !isOwn && (isSame || !previous)) return views
    const gateway = isOwn ? new Views({ ...options, viewDirs: others }) : null
    for (const view of new Set([...pagesOf(catalog).map(({ name }) => name), ...REFUSALS])) {
      if (views.#templates.has(view) || !views.has(view)) continue
      await setImmediate()
      try {
        views.template(view)
        views.#faults.delete(view)
      } catch (error) {
        views.#faults.set(view, faultOf(error))
        const kept = (previous && previous.#templates.get(view)) ?? (gateway?.has(view) && gateway.template(view))
        if (kept) views.#templates.set(view, kept)
      }
    }
    return views
  }

  /** True if a folder has the view. */
  has(view: string): boolean {
    return this.#fileOf(view) !== undefined
  }

  /** Returns a view. Throws if there is none, or if it has an error and no earlier version. */
  template(view: string): compileTemplate {
    const known = this.#templates.get(view)
    if (known) return known
    const file = this.#fileOf(view)
    if (file === undefined) throw new Error(`There is no view "${view}" in ${this.#folders.join(', ')}.`)
    const plugins = [{ resolve: (path: string, source: string) => this.#resolve(path, source) }]
    const options = { compileDebug: false, plugins }
    const template = pug().compileFile(file, options)
    this.#templates.set(view, template)
    return template
  }

  /** The errors that were found, each at a page that shows it. */
  issues(catalog: Catalog): readonly Issue[] {
    const refusals = REFUSALS.map((name) => ({ name, file: `views/${name}.pug`, pointer: '' }))
    const issues = new Map<string, Issue>()
    for (const { name, file, pointer } of [...pagesOf(catalog), ...refusals]) {
      const fault = this.#faults.get(name)
      if (fault === undefined || issues.has(fault)) continue
      issues.set(fault, { file, pointer, rule: 'view', message: `The view has an error: ${fault}.` })
    }
    return [...issues.values()]
  }

  #fileOf(view: string): string | undefined {
    if (!VIEW_NAME.test(view)) return undefined
    return this.#folders.map((folder) => join(folder, `${view}.pug`)).find((file) => existsSync(file))
  }

  /**
   * Returns the file that a view extends or includes. A path that begins with a slash, or that a view of the shop or of the
   * gateway has, is looked up in the shop and then in the gateway, and never means the file itself: so `layout.pug` of a shop
   * can extend `/layout`, and frames the pages of the gateway too.
   */
  #resolve(path: string, source: string): string {
    const home = this.#shared.find((folder) => source.startsWith(folder + sep))
    if (!path.startsWith('/') && home === undefined) return join(dirname(source), path)
    const base = path.startsWith('/') || home === undefined ? '' : relative(home, dirname(source))
    const name = posix.join('/', base, path)
    const files = this.#shared.map((folder) => join(folder, name))
    return files.find((file) => file !== source && existsSync(file)) ?? (files.at(-1) as string)
  }
}

/** The pages of a catalog: the names of their views, and where documents name them. */
const pagesOf = ({ products }: Catalog) =>
  products.flatMap(({ file, operations }) =>
    operations.flatMap(({ id, view, retired }) =>
      view === null || retired ? [] : [{ name: view, file, pointer: pointerOf('operations', id, 'view') }],
    ),
  )

/** Changes with the views in a folder and in those below it. */
function stampOf(folder: string): string {
  if (!existsSync(folder)) return folder
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.pug'))
  const stamps = files.sort().map((file) => {
    const { size, ctimeMs } = statSync(join(folder, file), { throwIfNoEntry: false }) ?? {}
    return [file, size, ctimeMs].join()
  })
  return [folder, ...stamps].join('\n')
}

/** An error of Pug. `msg` is the message without the lines of code around it. */
interface PugError {
  readonly msg?: string
  readonly message: string
  readonly filename?: string
  readonly line?: number
}

/** Describes an error of a view: `unexpected token "indent" (home.pug:3)`. */
function faultOf(error: unknown): string {
  const { msg, message, filename, line } = error as PugError
  const place = filename === undefined || line === undefined ? '' : ` (${basename(filename)}:${line})`
  return `${(msg ?? message).split('\n')[0]?.replace(/\.$/, '')}${place}`
}

/** Lists the files of the service's look that are in no folder of assets. */
export function missingAssets(service: Service, viewDirs: readonly string[]): Issue[] {
  return (['logo', 'style', 'image'] as const).flatMap((field): Issue[] => {
    const path = service[field]
    const isThere = !path?.startsWith('/assets/') || viewDirs.some((folder) => existsSync(join(folder, path)))
    if (isThere) return []
    const message = `There is no views${path}. Put the file there, or correct the path.`
    return [{ file: 'service.json', pointer: pointerOf(field), rule: 'asset', message }]
  })
}
