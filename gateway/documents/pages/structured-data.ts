/** Structured data for search engines about the service and its prices (https://schema.org, as JSON-LD). */
import type { Catalog, Operation } from '../../plugin/plugin.ts'
import { listed } from '../listed-operations.ts'

const CONTEXT = 'https://schema.org'

/** Describes the service, for the start page. */
export function linkedService({ service }: Catalog, baseUrl: string) {
  const organization = {
    '@type': 'Organization',
    '@id': `${baseUrl}/#organization`,
    name: service.name,
    url: `${baseUrl}/`,
  }
  return {
    '@context': CONTEXT,
    '@graph': [
      { ...organization, logo: baseUrl + (service.logo ?? '/assets/icon-180.png') },
      { '@type': 'WebSite', name: service.name, description: service.summary, url: `${baseUrl}/` },
      {
        '@type': 'WebAPI',
        name: service.name,
        description: service.description,
        documentation: `${baseUrl}/docs`,
        provider: { '@id': organization['@id'] },
        isAccessibleForFree: false,
      },
    ],
  }
}

/** Describes every priced route as an offer in US dollars per call. */
export function linkedOffers(catalog: Catalog, baseUrl: string) {
  return {
    '@context': CONTEXT,
    '@type': 'OfferCatalog',
    name: `${catalog.service.name}: prices`,
    url: `${baseUrl}/pricing`,
    itemListElement: listed(catalog).flatMap((operation) =>
      operation.price === null ? [] : [offer(operation, baseUrl)],
    ),
  }
}

function offer({ id, displayRoute, priceText, plan }: Operation, baseUrl: string) {
  return {
    '@type': 'Offer',
    name: plan?.label ?? displayRoute,
    price: priceText,
    priceCurrency: 'USD',
    url: `${baseUrl}/docs/${id}`,
  }
}
