// What an operator should look at, from the status of all nodes. Each sentence says what is wrong and what to do.

const secondsPerDay = 86400;
const certificateDaysMin = 30;
const memoryShareMax = 0.9;

/** Entries that a node may be behind before it counts: a few round trips of a busy partition. */
const lagMax = 10000;

/** The advice for a status; empty: there is nothing to do. */
export function adviceFor(cluster) {
  return [
    ...cluster.nodes.flatMap(adviceForNode),
    ...groupsOf(cluster).flatMap(adviceForGroup),
  ];
}

/** All groups of the cluster, with what each node says about them and how far it is behind. */
export function groupsOf(cluster) {
  const groups = new Map();
  for (const { nodeId, status } of cluster.nodes) {
    for (const [field, durability] of [['partitions', 'persistent'], ['ephemeralPartitions', 'ephemeral']]) {
      for (const told of status?.[field] ?? []) {
        const name = `${durability} ${told.partition}`;
        const group = groups.get(name) ?? { name, durability, partition: told.partition, members: [] };
        group.members.push({ nodeId, told });
        groups.set(name, group);
      }
    }
  }

  for (const group of groups.values()) {
    const newest = group.members.reduce((best, member) => (member.told.term > best.told.term
      || (member.told.term === best.told.term && member.told.leader > 0 && best.told.leader === 0) ? member : best));
    group.term = newest.told.term;
    group.leader = newest.told.leader;
    group.commit = Math.max(...group.members.map((member) => member.told.commitIndex));
    group.leading = group.members.find((member) => member.nodeId === group.leader)?.told ?? newest.told;
    group.behind = group.members.map(
      (member) => ({ nodeId: member.nodeId, entries: group.commit - member.told.appliedIndex }));
  }

  return [...groups.values()];
}

function adviceForNode({ nodeId, problem, status }) {
  if (status === undefined) {
    return [`Node ${nodeId} does not answer: ${problem.replace(/\.$/, '')}. Look whether it runs, and at its log.`];
  }

  const found = [];
  if (!status.ready) {
    found.push(`Node ${nodeId} is not ready: ${status.reason}.`);
  }

  const days = status.certificate === undefined ? Infinity : status.certificate.secondsLeft / secondsPerDay;
  if (days < certificateDaysMin) {
    found.push(`Node ${nodeId}: ${status.certificate.part} (${status.certificate.subject}) `
      + (days <= 0 ? 'has expired. Renew it.' : `expires in ${Math.floor(days)} days. Renew it.`));
  }

  for (const [used, limit, option] of [
    [status.persistentBytes, status.limits?.persistentBytes, '--persistent-limit'],
    [status.ephemeralBytes, status.limits?.ephemeralBytes, '--ephemeral-limit'],
    [status.storage?.logBytes, status.limits?.logBytes, '--log-limit'],
  ]) {
    if (limit > 0 && used > memoryShareMax * limit) {
      found.push(`Node ${nodeId} uses ${Math.floor(100 * used / limit)} % of ${option}; above it writes are refused. `
        + 'Delete data, or raise the limit on all nodes.');
    }
  }

  if (status.connections?.refused > 0) {
    found.push(`Node ${nodeId} has refused ${status.connections.refused} connections since its start, because an `
      + 'address had more than --connections-per-address. Look for a client that does not close its connections.');
  }

  return found;
}

function adviceForGroup(group) {
  const title = `Partition ${group.partition} (${group.durability})`;
  const found = [];
  if (group.leader === 0) {
    found.push(`${title} has no leader, so that it serves nothing. It needs a majority of its nodes.`);
  }

  for (const { nodeId, told } of group.members) {
    if (told.stopped) {
      found.push(`${title} has stopped on node ${nodeId}: ${told.stopped}`);
    }

    if (told.logStalled) {
      found.push(`${title}: the disk of node ${nodeId} does not take the log. Look at the disk.`);
    }
  }

  for (const { nodeId, entries } of group.behind) {
    if (entries > lagMax) {
      found.push(`${title}: node ${nodeId} is ${entries} entries behind. Look at its processor, disk and network.`);
    }
  }

  return found;
}
