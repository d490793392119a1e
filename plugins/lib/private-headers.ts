/** Response headers of pages whose URL contains a secret id. They must not be cached or indexed. */
export const PRIVATE_HEADERS = { 'x-robots-tag': 'noindex, nofollow', 'cache-control': 'private, no-store' } as const
