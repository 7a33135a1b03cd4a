"""The names that a site has at the moment, for what is typed and for completion."""

from dataclasses import dataclass

from xce.replay.prompt.play import Play


@dataclass(frozen=True, slots=True)
class Names:
    """Names by what they are names of.

    Attributes:
        jobs: of all jobs of the workload, and of those that are there now.
        items: templates and resources that providers offer.
        templates: ``provider/template``, by the template's own name where only one provider has it.
        features: of licence servers: ``server``, by the name of the feature.
    """

    jobs: tuple[str, ...]
    hosts: tuple[str, ...]
    shared: tuple[str, ...]
    limits: tuple[str, ...]
    providers: tuple[str, ...]
    items: tuple[str, ...]
    templates: dict[str, tuple[str, str]]
    features: dict[str, str]

    @classmethod
    def of(cls, play: Play) -> "Names":
        """Return the names of a run where it stands."""
        world = play.world
        waiting = (job.id for job in world.cluster.pending())
        running = (job.id for job in world.cluster.running())
        offers = [
            (provider.name, offer.template_id)
            for provider in world.providers.values()
            for offer in provider.description.templates
        ]
        templates = {
            f"{provider}/{template}": (provider, template) for provider, template in offers
        }
        for provider, template in offers:
            if sum(1 for _, other in offers if other == template) == 1:
                templates[template] = (provider, template)
        resources = (
            offer.name
            for provider in world.providers.values()
            for offer in provider.description.resources
        )
        return cls(
            jobs=tuple(
                dict.fromkeys((*(job.id for job in world.workload.jobs), *waiting, *running))
            ),
            hosts=tuple(host.name for host in world.cluster.hosts()),
            shared=tuple(pool.name for pool in world.config.cluster.shared),
            limits=tuple(limit.name for limit in world.config.cluster.limits),
            providers=tuple(world.providers),
            items=tuple(dict.fromkeys((*(template for _, template in offers), *resources))),
            templates=templates,
            features={
                feature.name: server.name
                for server in play.site.scenario.servers
                for feature in server.features
            },
        )
