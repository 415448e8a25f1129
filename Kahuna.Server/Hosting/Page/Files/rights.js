// What the signed-in user may do, from the grants that the node tells. The node checks each call itself; this decides
// only what the page offers.

let grants = [];
let isOpen = false;

/** Takes the answer of `whoami`. */
export function learn(caller) {
  isOpen = caller.method === 'none';
  grants = caller.grants ?? [];
}

/** Whether the user may write a key. */
export function mayWrite(key, durability) {
  return isOpen || grants.some((grant) => grant.permissions.includes('WRITE')
    && covers(grant, key) && isOfLevel(grant, durability));
}

function isOfLevel(grant, durability) {
  return grant.level === undefined || grant.level === 'GRANT_LEVEL_UNSPECIFIED'
    || (grant.level === 'PERSISTENT_NAMES') === (durability === 'DURABILITY_PERSISTENT');
}

function covers(grant, name) {
  return grant.key !== undefined ? name === grant.key
    : grant.bucket !== undefined
      ? name.startsWith(`${grant.bucket}/`) || (name === grant.bucket && !name.includes('/'))
    : name.startsWith(grant.prefix ?? '');
}
