/**
 * Finds the operation of a request in a tree of path segments, so that the lookup does not slow down with the number of
 * routes. Paths are strict and case-sensitive. A parameter matches exactly one segment, and a literal segment wins over
 * a parameter: "/v1/x/gold" over "/v1/x/{name}".
 */
import type { BoundOperation, Edition } from '../products/edition.ts'

/** Where a request leads. `methods` are those its path supports; empty if the path is unknown. */
export type Found =
  | { readonly bound: BoundOperation; readonly params: Readonly<Record<string, string>> }
  | { readonly bound: null; readonly methods: readonly string[] }

/** Finds the operation of a method and a raw path. */
export type Routes = (method: string, path: string) => Found

interface PathNode {
  readonly literals: Map<string, PathNode>
  /** The node that any segment matches. */
  parameter: PathNode | null
  readonly byMethod: Map<string, BoundOperation>
}

const emptyNode = (): PathNode => ({ literals: new Map(), parameter: null, byMethod: new Map() })

/** Builds the routes of an edition. */
export function createRoutes(edition: Edition): Routes {
  const root = emptyNode()
  for (const bound of edition.bound.values()) {
    const { internal, path, method } = bound.operation
    if (!internal && path !== '') nodeAt(root, path.split('/').slice(1)).byMethod.set(method, bound)
  }
  return (asked, path) => {
    const segments = path.split('/').slice(1)
    const nodes = matching(root, segments, 0)
    const method = asked === 'HEAD' ? 'GET' : asked
    const bound = nodes.find(({ byMethod }) => byMethod.has(method))?.byMethod.get(method)
    return bound
      ? { bound, params: paramsOf(bound.operation.path, segments) }
      : { bound: null, methods: methodsOf(nodes) }
  }
}

/** The node of a path, created if it does not exist. */
function nodeAt(root: PathNode, segments: readonly string[]): PathNode {
  let node = root
  for (const segment of segments) {
    const known = segment.startsWith('{') ? node.parameter : node.literals.get(segment)
    const next = known ?? emptyNode()
    if (segment.startsWith('{')) node.parameter = next
    else node.literals.set(segment, next)
    node = next
  }
  return node
}

/** Every node that matches the segments from `at` on, the most literal first. */
function matching(node: PathNode, segments: readonly string[], at: number): readonly PathNode[] {
  const segment = segments[at]
  if (segment === undefined) return node.byMethod.size > 0 ? [node] : []
  const literal = node.literals.get(segment)
  const exact = literal ? matching(literal, segments, at + 1) : []
  if (node.parameter === null || segment === '') return exact
  return [...exact, ...matching(node.parameter, segments, at + 1)]
}

function methodsOf(nodes: readonly PathNode[]): readonly string[] {
  const methods = nodes.flatMap(({ byMethod }) => [...byMethod.keys()])
  return [...new Set(methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))]
}

/** The values of a path's parameters. Decoding cannot fail: parseTarget rejected broken percent escapes. */
function paramsOf(path: string, segments: readonly string[]): Record<string, string> {
  if (!path.includes('{')) return {}
  const names = path.split('/').slice(1)
  return Object.fromEntries(
    names.flatMap((name, at) =>
      name.startsWith('{') ? [[name.slice(1, -1), decodeURIComponent(segments[at] as string)]] : [],
    ),
  )
}
